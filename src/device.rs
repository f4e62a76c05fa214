//! Where a panel computes, and how its weights are kept there.

use anyhow::{Result, bail};
use candle::{DType, Device};

use crate::cli::{DeviceArg, DtypeArg, PlaceFlags};
use crate::terminal::progress::say;

/// The place of a panel's weights.
#[derive(Clone, Debug)]
pub struct Place {
    /// The device.
    pub device: Device,
    /// The type of matrices in memory. Sums are taken in f32, and all that is no matrix is kept so.
    pub dtype: DType,
}

impl Place {
    /// The CPU, weights in f32.
    pub fn cpu() -> Self {
        Self {
            device: Device::Cpu,
            dtype: DType::F32,
        }
    }

    /// The place that `--device` and `--dtype` ask for.
    pub fn open(flags: PlaceFlags) -> Result<Self> {
        Ok(Self {
            device: open(flags.device)?,
            dtype: match flags.dtype {
                DtypeArg::F32 => DType::F32,
                DtypeArg::F16 => DType::F16,
                DtypeArg::Bf16 => DType::BF16,
            },
        })
    }
}

/// The device that `--device` asks for. `auto` takes the first GPU a build with CUDA finds, else
/// the CPU; a device named outright is never exchanged for another.
pub fn open(device: DeviceArg) -> Result<Device> {
    match device {
        DeviceArg::Cpu => Ok(Device::Cpu),
        DeviceArg::Auto if !cfg!(feature = "cuda") => Ok(Device::Cpu),
        DeviceArg::Auto => Ok(Device::new_cuda(0).unwrap_or_else(|error| {
            say(&format!("computing on the CPU: {}", reason(&error)));
            Device::Cpu
        })),
        DeviceArg::Cuda(_) if !cfg!(feature = "cuda") => bail!(
            "--device cuda: this program was built without CUDA\n\
             hint: build it with `cargo build --release --features cuda`, or use --device cpu"
        ),
        DeviceArg::Cuda(n) => match Device::new_cuda(n) {
            Ok(device) => Ok(device),
            Err(error) => bail!(
                "--device cuda:{n}: {}\nhint: use --device cpu",
                reason(&error)
            ),
        },
    }
}

/// Why there is no such device, in words where the driver has none.
fn reason(error: &candle::Error) -> String {
    let text = error.to_string();
    if text.contains("CUDA_ERROR_STUB_LIBRARY") {
        return "there is no CUDA driver (libcuda.so.1) on this machine".to_owned();
    }
    text.lines().next().unwrap_or_default().to_owned()
}

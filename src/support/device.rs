//! Where a panel computes, and how its weights are kept there.

use std::str::FromStr;

use anyhow::{Result, bail};
use candle::{DType, Device};
use clap::ValueEnum;

use crate::support::terminal::progress::say;

/// The place of a panel's weights.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The device.
    pub device: Device,
    /// The type of matrices in memory. Sums are taken in f32, and all that is no matrix is kept so.
    pub dtype: DType,
}

impl Placement {
    /// The CPU, weights in f32.
    pub fn cpu() -> Self {
        Self {
            device: Device::Cpu,
            dtype: DType::F32,
        }
    }

    /// The place that `--device` and `--dtype` ask for.
    pub fn open(device: DeviceChoice, dtype: DtypeChoice) -> Result<Self> {
        Ok(Self {
            device: open(device)?,
            dtype: match dtype {
                DtypeChoice::F32 => DType::F32,
                DtypeChoice::F16 => DType::F16,
                DtypeChoice::Bf16 => DType::BF16,
            },
        })
    }
}

/// The type of matrices in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DtypeChoice {
    /// Single precision
    F32,
    /// Half precision, as most checkpoints of LLaVA are stored
    F16,
    /// Half precision with the range of single
    Bf16,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if the program was built for one and it is there, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|number| number.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| "expected auto, cpu, cuda or cuda:<number>".to_owned()),
        }
    }
}

/// The device that `--device` asks for. `auto` takes the first GPU a build with CUDA finds, else
/// the CPU; a device named outright is never exchanged for another.
pub fn open(device: DeviceChoice) -> Result<Device> {
    match device {
        DeviceChoice::Cpu => Ok(Device::Cpu),
        DeviceChoice::Auto if !cfg!(feature = "cuda") => Ok(Device::Cpu),
        DeviceChoice::Auto => Ok(Device::new_cuda(0).unwrap_or_else(|error| {
            say(&format!("computing on the CPU: {}", reason(&error)));
            Device::Cpu
        })),
        DeviceChoice::Cuda(_) if !cfg!(feature = "cuda") => bail!(
            "--device cuda: this program was built without CUDA\n\
             hint: build it with `cargo build --release --features cuda`, or use --device cpu"
        ),
        DeviceChoice::Cuda(n) => match Device::new_cuda(n) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_strictly() {
        assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert!("gpu".parse::<DeviceChoice>().is_err());
        assert!("cuda:x".parse::<DeviceChoice>().is_err());
    }
}

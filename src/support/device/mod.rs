//! Devices and types of weights, and the environment that the computation needs.

pub mod environment;

use std::str::FromStr;

use anyhow::{Result, bail};
use candle::quantized::GgmlDType;
use candle::{DType, Device};
use clap::ValueEnum;

use crate::support::terminal::progress::print_lines;

/// The device and element type of a panel's weights.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Device of all tensors.
    pub device: Device,
    /// The element type of matrices. Sums, norms and biases are f32.
    pub dtype: DType,
    /// The type of quantised blocks in which the decoder's matrices are stored, if any.
    pub blocks: Option<GgmlDType>,
}

impl Placement {
    /// Returns the CPU with f32 weights.
    pub fn cpu() -> Self {
        Self { device: Device::Cpu, dtype: DType::F32, blocks: None }
    }

    /// Opens the device of `--device` with the element type of `--dtype`.
    pub fn open(device: DeviceChoice, dtype: DtypeChoice) -> Result<Self> {
        let (dtype, blocks) = match dtype {
            DtypeChoice::F32 => (DType::F32, None),
            DtypeChoice::F16 => (DType::F16, None),
            DtypeChoice::Bf16 => (DType::BF16, None),
            DtypeChoice::Q8_0 => (DType::F32, Some(GgmlDType::Q8_0)),
            DtypeChoice::Q4K => (DType::F32, Some(GgmlDType::Q4K)),
        };
        let device = open_device(device)?;
        if blocks.is_some() && !device.is_cpu() {
            bail!(
                "--dtype: quantised weights run on the CPU only\n\
                 hint: use --dtype bf16, or --device cpu"
            );
        }
        Ok(Self { device, dtype, blocks })
    }

    /// Returns the usual name of the type of the decoder's matrices.
    pub fn weight_type(&self) -> &'static str {
        match self.blocks {
            Some(GgmlDType::Q8_0) => "q8_0",
            Some(_) => "q4k",
            None => self.dtype.as_str(),
        }
    }
}

/// The element type of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DtypeChoice {
    /// Single precision
    F32,
    /// Half precision, as in most LLaVA checkpoints
    F16,
    /// Half precision with the range of f32
    Bf16,
    /// 8 bits: blocks of 32 values share a scale (decoder only; CPU)
    #[value(name = "q8_0")]
    Q8_0,
    /// 4 bits in blocks of 256 values, embeddings and output in 8 bits (decoder only; CPU)
    #[value(name = "q4k")]
    Q4K,
}

/// The value of `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if the program was built with CUDA and finds one, otherwise the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device with this number.
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

/// Opens the device of `--device`.
///
/// `auto` selects the first GPU if the program was built with CUDA, otherwise the CPU. An
/// explicitly selected device is never replaced by another.
pub fn open_device(device: DeviceChoice) -> Result<Device> {
    match device {
        DeviceChoice::Cpu => Ok(Device::Cpu),
        DeviceChoice::Auto if !cfg!(feature = "cuda") => Ok(Device::Cpu),
        DeviceChoice::Auto => Ok(Device::new_cuda(0).unwrap_or_else(|error| {
            print_lines(&format!("computing on the CPU: {}", describe_error(&error)));
            Device::Cpu
        })),
        DeviceChoice::Cuda(_) if !cfg!(feature = "cuda") => bail!(
            "--device cuda: this program was built without CUDA\n\
             hint: build it with `cargo build --release --features cuda`, or use --device cpu"
        ),
        DeviceChoice::Cuda(n) => match Device::new_cuda(n) {
            Ok(device) => Ok(device),
            Err(error) => {
                bail!("--device cuda:{n}: {}\nhint: use --device cpu", describe_error(&error))
            }
        },
    }
}

/// Returns the first line of a driver error, or a clear message for a missing driver.
fn describe_error(error: &candle::Error) -> String {
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
    fn invalid_devices_are_rejected() {
        assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert!("gpu".parse::<DeviceChoice>().is_err());
        assert!("cuda:x".parse::<DeviceChoice>().is_err());
    }
}

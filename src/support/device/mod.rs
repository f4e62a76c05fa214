//! Devices and types of weights, and the environment that the computation needs.

pub mod environment;

use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use candle::quantized::GgmlDType;
use candle::{DType, Device};
use clap::ValueEnum;

use crate::support::process::limits;
use crate::support::terminal::progress::print_lines;

/// The device and element type of a panel's weights.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Device of all tensors.
    pub device: Device,
    /// The element type of matrices. Sums, norms and biases are f32.
    pub dtype: DType,
    /// The type of quantised blocks in which the decoder's matrices are stored, if any. Those of the
    /// vision tower's layers are then in `Q8_0`.
    pub blocks: Option<GgmlDType>,
    /// True to keep matrices that a file stores in bf16 as they are, whatever `dtype` says. Training
    /// in bf16 needs them in memory once.
    pub keeps_bf16: bool,
}

impl Placement {
    /// Returns the CPU with f32 weights.
    pub fn cpu() -> Self {
        Self { device: Device::Cpu, dtype: DType::F32, blocks: None, keeps_bf16: false }
    }

    /// Opens the device of `--device` with the element type of `--dtype`.
    pub fn open(device: &DeviceChoice, dtype: DtypeChoice) -> Result<Self> {
        Self::on(open_device(device)?, dtype)
    }

    /// Opens all devices of `--device` with the element type of `--dtype`.
    pub fn open_all(device: &DeviceChoice, dtype: DtypeChoice) -> Result<Vec<Self>> {
        let DeviceChoice::Cuda(numbers) = device else {
            return Ok(vec![Self::open(device, dtype)?]);
        };
        numbers.iter().map(|n| Self::open(&DeviceChoice::Cuda(vec![*n]), dtype)).collect()
    }

    /// Places weights of an element type on a device.
    fn on(device: Device, dtype: DtypeChoice) -> Result<Self> {
        let (dtype, blocks) = match dtype {
            DtypeChoice::F32 => (DType::F32, None),
            DtypeChoice::F16 => (DType::F16, None),
            DtypeChoice::Bf16 => (DType::BF16, None),
            DtypeChoice::Q8_0 => (DType::F32, Some(GgmlDType::Q8_0)),
            DtypeChoice::Q4K => (DType::F32, Some(GgmlDType::Q4K)),
        };
        if blocks.is_some() && !device.is_cpu() {
            bail!(
                "--dtype: quantised weights run on the CPU only\n\
                 hint: use --dtype bf16, or --device cpu"
            );
        }
        Ok(Self { device, dtype, blocks, keeps_bf16: false })
    }

    /// Returns true if products on the CPU round their inputs to bf16. On a GPU, inputs have the type of
    /// the weights anyway.
    pub fn rounds_inputs(&self) -> bool {
        self.device.is_cpu() && self.dtype == DType::BF16
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
    /// Half precision with the range of f32; fast on CPUs with AMX or AVX-512 BF16
    Bf16,
    /// 8 bits: blocks of 32 values share a scale (decoder and vision tower; CPU)
    #[value(name = "q8_0")]
    Q8_0,
    /// 4 bits in blocks of 256 values; embeddings, output and vision tower in 8 bits (CPU)
    #[value(name = "q4k")]
    Q4K,
}

/// The value of `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if the program was built with CUDA and finds one, otherwise the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA devices with these numbers, all different.
    Cuda(Vec<usize>),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(vec![0])),
            _ => {
                let invalid = || "expected auto, cpu, cuda, cuda:N or cuda:N,M,…".to_owned();
                let numbers = text.strip_prefix("cuda:").ok_or_else(invalid)?;
                let numbers: Result<Vec<usize>, _> = numbers.split(',').map(str::parse).collect();
                let numbers = numbers.map_err(|_| invalid())?;
                let is_repeated = |i: usize| numbers.iter().take(i).any(|n| *n == numbers[i]);
                match (0..numbers.len()).find(|i| is_repeated(*i)) {
                    Some(i) => Err(format!("device {} is named twice", numbers[i])),
                    None => Ok(Self::Cuda(numbers)),
                }
            }
        }
    }
}

/// Returns the memory for texts in progress in bytes: half of the free memory of a CPU and four fifths
/// of that of a GPU, if it is known.
pub fn text_memory(device: &Device) -> Option<u64> {
    // On a CPU, other programs need the rest. On a GPU, passes over long prompts need it.
    let share = |bytes: u64| if device.is_cpu() { bytes / 2 } else { bytes / 5 * 4 };
    free_memory(device).map(share)
}

/// Returns the free memory of a device in bytes, if it is known.
fn free_memory(device: &Device) -> Option<u64> {
    match device {
        Device::Cpu => limits::free_memory(),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            let (free, _) = device.cuda_stream().context().mem_get_info().ok()?;
            Some(free as u64)
        }
        _ => None,
    }
}

/// Opens the device of `--device`.
///
/// `auto` selects the first GPU if the program was built with CUDA, otherwise the CPU. An
/// explicitly selected device is never replaced by another.
///
/// # Errors
///
/// The device cannot be opened, or several are selected.
pub fn open_device(device: &DeviceChoice) -> Result<Device> {
    match device {
        DeviceChoice::Cpu => Ok(Device::Cpu),
        DeviceChoice::Auto if !cfg!(feature = "cuda") => Ok(Device::Cpu),
        DeviceChoice::Auto => Ok(open_gpu(0).unwrap_or_else(|error| {
            print_lines(&format!("computing on the CPU: {}", describe_error(&error)));
            Device::Cpu
        })),
        DeviceChoice::Cuda(_) if !cfg!(feature = "cuda") => bail!(
            "--device cuda: this program was built without CUDA\n\
             hint: build it with `cargo build --release --features cuda`, or use --device cpu"
        ),
        DeviceChoice::Cuda(numbers) => match numbers.as_slice() {
            [n] => open_gpu(*n).map_err(|error| {
                let problem = describe_error(&error);
                anyhow!("--device cuda:{n}: {problem}\nhint: use --device cpu")
            }),
            _ => bail!(
                "--device: this command computes on one device\n\
                 hint: name one, such as cuda:0"
            ),
        },
    }
}

/// Opens a GPU.
#[cfg_attr(feature = "cuda", expect(unsafe_code, reason = "each tensor would create two events"))]
fn open_gpu(number: usize) -> candle::Result<Device> {
    // `new_cuda` has a stream for each thread, and the work of threads is then not in order.
    let device = Device::new_cuda_with_stream(number)?;
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = &device {
        // SAFETY: the events order the work of several streams, and this device has one stream, which all
        // threads use.
        unsafe { device.disable_event_tracking() };
    }
    Ok(device)
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
        assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(vec![3])));
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(vec![0])));
        assert_eq!("cuda:2,0".parse(), Ok(DeviceChoice::Cuda(vec![2, 0])));
        for invalid in ["gpu", "cuda:x", "cuda:", "cuda:0,", "cuda:1,0,1"] {
            assert!(invalid.parse::<DeviceChoice>().is_err(), "{invalid}");
        }
    }
}

//! Where a panel computes.

use anyhow::{Result, bail};
use candle::Device;

use crate::cli::DeviceArg;

/// The device that `--device` asks for. `auto` takes the first GPU a build with CUDA finds, else
/// the CPU; a device named outright is never exchanged for another.
pub fn open(device: DeviceArg) -> Result<Device> {
    match device {
        DeviceArg::Cpu => Ok(Device::Cpu),
        DeviceArg::Auto if !cfg!(feature = "cuda") => Ok(Device::Cpu),
        DeviceArg::Auto => Ok(Device::new_cuda(0).unwrap_or(Device::Cpu)),
        DeviceArg::Cuda(_) if !cfg!(feature = "cuda") => bail!(
            "--device cuda: this program was built without CUDA\n\
             hint: build it with `cargo build --release --features cuda`, or use --device cpu"
        ),
        DeviceArg::Cuda(n) => match Device::new_cuda(n) {
            Ok(device) => Ok(device),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default();
                bail!("--device cuda:{n}: {reason}\nhint: use --device cpu")
            }
        },
    }
}

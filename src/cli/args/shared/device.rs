//! The device that a panel runs on.

use anyhow::Result;
use clap::Args;

use crate::support::device::{DeviceChoice, DtypeChoice, Placement};

/// Arguments that select a device and the element type of weights on it.
#[derive(Args, Clone, Debug)]
pub struct DeviceArgs {
    /// Compute on this device: auto, cpu, cuda or cuda:N; on several GPUs, each with a copy of the
    /// panel: cuda:N,M,…
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// Store weight matrices in this type; all but f32 take less memory and can change
    /// verdicts
    #[arg(long, value_enum, default_value_t = DtypeChoice::F32, env = "ACEM3_DTYPE")]
    pub dtype: DtypeChoice,
}

impl DeviceArgs {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or several are selected.
    pub fn open(&self) -> Result<Placement> {
        Placement::open(&self.device, self.dtype)
    }

    /// Opens all selected devices.
    pub fn open_all(&self) -> Result<Vec<Placement>> {
        Placement::open_all(&self.device, self.dtype)
    }
}

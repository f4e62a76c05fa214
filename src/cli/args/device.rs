//! Where to compute.

use anyhow::Result;
use clap::Args;

use crate::support::device::{DeviceChoice, DtypeChoice, Placement};

/// Where a panel computes, and how its weights are kept there.
#[derive(Args, Clone, Copy, Debug)]
pub struct DeviceArgs {
    /// Where to compute: auto, cpu, cuda or cuda:1
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceChoice,
    /// The type in which the matrices of a panel that judges are kept; half the memory in f16 or bf16, and other
    /// verdicts
    #[arg(long, value_enum, default_value_t = DtypeChoice::F32, env = "ACEM3_DTYPE")]
    pub dtype: DtypeChoice,
}

impl DeviceArgs {
    /// Open the device and choose the data type.
    pub fn open(self) -> Result<Placement> {
        Placement::open(self.device, self.dtype)
    }
}

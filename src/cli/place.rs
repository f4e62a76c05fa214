//! Where to compute.

use std::str::FromStr;

use clap::{Args, ValueEnum};

/// Where a panel computes, and how its weights are kept there.
#[derive(Args, Clone, Copy, Debug)]
pub struct PlaceFlags {
    /// Where to compute: auto, cpu, cuda or cuda:1
    #[arg(long, default_value = "auto", env = "ACEM3_DEVICE")]
    pub device: DeviceArg,
    /// The type in which the matrices of a panel that judges are kept; half the memory in f16 or bf16, and other
    /// verdicts
    #[arg(long, value_enum, default_value_t = DtypeArg::F32, env = "ACEM3_DTYPE")]
    pub dtype: DtypeArg,
}

/// The type of matrices in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DtypeArg {
    /// Single precision
    F32,
    /// Half precision, as most checkpoints of LLaVA are stored
    F16,
    /// Half precision with the range of single
    Bf16,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceArg {
    /// A GPU if the program was built for one and it is there, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
}

impl FromStr for DeviceArg {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_strictly() {
        assert_eq!("cuda:3".parse(), Ok(DeviceArg::Cuda(3)));
        assert_eq!("cuda".parse(), Ok(DeviceArg::Cuda(0)));
        assert!("gpu".parse::<DeviceArg>().is_err());
        assert!("cuda:x".parse::<DeviceArg>().is_err());
    }
}

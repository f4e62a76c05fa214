//! Settings of the bootstrap.

use clap::Args;

use crate::statistics::Bootstrap;

/// Arguments of the bootstrap for confidence intervals.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Confidence intervals")]
pub struct BootstrapArgs {
    /// Resample cases with the same value of `meta.FIELD` together, for example `patient` [default:
    /// cases with the same image]
    #[arg(long, value_name = "FIELD", env = "ACEM3_CLUSTER_BY")]
    pub cluster_by: Option<String>,
    /// Draw N bootstrap resamples
    #[arg(long, value_name = "N", default_value_t = 2000, env = "ACEM3_RESAMPLES")]
    #[arg(value_parser = clap::value_parser!(u32).range(20..=1_000_000))]
    pub resamples: u32,
    /// Seed the random numbers with SEED; equal seeds give equal results
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
}

impl BootstrapArgs {
    /// Returns the bootstrap with these settings.
    pub fn to_bootstrap(&self) -> Bootstrap {
        Bootstrap { resamples: self.resamples as usize, seed: self.seed }
    }
}

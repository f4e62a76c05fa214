//! The number of samples of each analysis.

use clap::Args;

use crate::checkpoints::panel::sample_count::SampleCount;

/// Argument for the samples of analyses.
#[derive(Args, Clone, Copy, Debug)]
pub struct SamplesArgs {
    /// Average the scores of N samples of each analysis, which differ where several continuations are
    /// probable; 1 judges by the most probable analysis alone [default: the number in panel.toml, or 1]
    #[arg(long, value_name = "N", env = "ACEM3_SAMPLES")]
    pub samples: Option<SampleCount>,
}

impl SamplesArgs {
    /// Returns true if more than one sample is requested.
    pub fn is_set(self) -> bool {
        self.samples.is_some_and(|samples| !samples.is_one())
    }
}

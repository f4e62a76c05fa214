//! The number of samples of each analysis.

use std::num::NonZeroUsize;

use clap::Args;

/// Maximum number of samples.
const MAX_SAMPLES: usize = 64;

/// Argument for the samples of analyses.
#[derive(Args, Clone, Copy, Debug)]
pub struct SamplesArgs {
    /// Average the scores of N samples of each analysis, which differ where several continuations are
    /// probable; 1 judges by the most probable analysis alone
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN, env = "ACEM3_SAMPLES")]
    #[arg(value_parser = parse_samples)]
    pub samples: NonZeroUsize,
}

impl SamplesArgs {
    /// Returns true if there is more than one sample.
    pub fn is_set(self) -> bool {
        self.samples > NonZeroUsize::MIN
    }
}

/// Parses a number of samples.
fn parse_samples(text: &str) -> Result<NonZeroUsize, String> {
    let samples = text.parse::<NonZeroUsize>().ok().filter(|samples| samples.get() <= MAX_SAMPLES);
    samples.ok_or_else(|| format!("expected a number from 1 to {MAX_SAMPLES}"))
}

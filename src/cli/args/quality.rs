//! Arguments of `acem3 data quality`.

use std::path::PathBuf;

use clap::Args;

use super::shared::OutputFormat;

/// Arguments of `acem3 data quality`.
#[derive(Args, Clone, Debug)]
pub struct QualityArgs {
    /// Evaluations: JSONL with `prompt`, `completion` (or `chosen`) and, if rated, `quality`
    #[arg(value_name = "FILE")]
    pub path: PathBuf,
    /// Write the lines to FILE; `quality` becomes the probability that the evaluation belongs to
    /// the better-rated half, and ratings move to `rated`
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Seed the folds and the confidence interval with SEED
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
    /// Print the result in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

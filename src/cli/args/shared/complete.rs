//! The argument that refuses unfinished runs.

use clap::Args;
use clap::builder::FalseyValueParser;

/// Argument of commands that draw conclusions from runs.
#[derive(Args, Clone, Copy, Debug)]
pub struct CompleteArgs {
    /// Fail if a run is unfinished or has damaged records, instead of saying so above the results
    #[arg(long, env = "ACEM3_COMPLETE", value_parser = FalseyValueParser::new())]
    pub complete: bool,
}

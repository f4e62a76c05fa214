//! The argument that refuses unfinished runs.

use clap::Args;

use crate::support::terminal::switch::parse_switch;

/// Argument of commands that draw conclusions from runs.
#[derive(Args, Clone, Copy, Debug)]
pub struct CompleteArgs {
    /// Fail if a run is unfinished or has damaged records, instead of saying so above the results
    #[arg(long, env = "ACEM3_COMPLETE", value_parser = parse_switch)]
    pub complete: bool,
}

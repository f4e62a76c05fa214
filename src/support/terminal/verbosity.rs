//! Verbosity of messages and mode of the progress on stderr.

use clap::{Args, ValueEnum};

use crate::support::terminal::switch::parse_switch;

/// Verbosity of messages on stderr.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Verbosity {
    /// Print more messages, for example the reason for every unscored case
    #[arg(
        short,
        long,
        global = true,
        env = "ACEM3_VERBOSE",
        conflicts_with = "quiet",
        help_heading = "Messages"
    )]
    #[arg(value_parser = parse_switch)]
    pub verbose: bool,
    /// Print only errors and results
    #[arg(help_heading = "Messages")]
    #[arg(short, long, global = true, env = "ACEM3_QUIET", value_parser = parse_switch)]
    pub quiet: bool,
}

/// Mode of the progress on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// A bar on a terminal, log lines elsewhere
    Auto,
    /// A bar
    Bar,
    /// A log line about every ten seconds
    Log,
    /// No progress
    None,
}

//! How much the program writes to stderr, and in which form.

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

/// How much is said on stderr.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Verbosity {
    /// Say more: every case that has no verdict, and why
    #[arg(
        short,
        long,
        global = true,
        env = "ACEM3_VERBOSE",
        conflicts_with = "quiet",
        help_heading = "Messages"
    )]
    #[arg(value_parser = FalseyValueParser::new())]
    pub verbose: bool,
    /// Say nothing but errors and results
    #[arg(help_heading = "Messages")]
    #[arg(short, long, global = true, env = "ACEM3_QUIET", value_parser = FalseyValueParser::new())]
    pub quiet: bool,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// A bar on a terminal, lines elsewhere
    Auto,
    /// A bar
    Bar,
    /// A line about every ten seconds
    Log,
    /// Nothing
    None,
}

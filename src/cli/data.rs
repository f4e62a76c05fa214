//! What may be typed behind `acem3 data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, SourceArgs};

/// `acem3 data`.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// What to do with data.
    #[command(subcommand)]
    pub command: DataCommand,
}

/// The commands of `acem3 data`.
#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    /// Draw images with known lesions, ask about them, and answer well and badly on purpose
    ///
    /// The right verdict on every criterion is known by rule and written as labels, so that any
    /// judge can be tested with them: does it look at the image?
    Phantoms(PhantomArgs),
    /// Read cases without judging them, decode their images, and list every problem
    ///
    /// Exits with 1 when there is one.
    Check(CheckArgs),
}

/// `acem3 data phantoms`.
#[derive(Args, Clone, Debug)]
pub struct PhantomArgs {
    /// The folder to write `cases.jsonl` and `images/` into
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// How many cases
    #[arg(long, default_value_t = 12, env = "ACEM3_N")]
    pub n: u64,
    /// The seed: equal seeds give equal files
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
}

/// `acem3 data check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// What to read.
    #[command(flatten)]
    pub source: SourceArgs,
    /// How many responses a case needs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        env = "ACEM3_MIN_RESPONSES"
    )]
    pub min_responses: usize,
    /// The form of the list on stdout
    #[arg(long, value_enum, default_value_t = Format::Text, env = "ACEM3_FORMAT")]
    pub format: Format,
}

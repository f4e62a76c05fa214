//! Arguments of `acem3 merge`.

use std::path::PathBuf;

use clap::Args;

use super::shared::OutputFormat;
use super::shared::value_parsers::parse_percent;

use crate::support::terminal::switch::parse_switch;

const EXAMPLES: &str = "\
Examples:
  acem3 merge part1 part2 --out verdicts
      Join the shards of `acem3 judge --shard 1/2` and `--shard 2/2`
  acem3 merge parts/* --out so-far --partial
      Join what there is; `so-far` counts as unfinished

The merged records equal those of a run over all cases, byte for byte.";

/// Arguments of `acem3 merge`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Folders that `judge --shard I/N --out` wrote, one per shard
    #[arg(required = true, value_name = "SHARD")]
    pub shards: Vec<PathBuf>,
    /// Write the merged run to DIR: a new folder, or that of an earlier merge of these shards
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Merge even if shards are missing or unfinished
    #[arg(long, env = "ACEM3_PARTIAL", value_parser = parse_switch)]
    pub partial: bool,
    /// Exit with code 3 if more than PERCENT of the records are unscored or of the cases unreadable
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_UNSCORED",
        value_parser = parse_percent,
        default_value = "50"
    )]
    pub max_unscored: f64,
    /// Write the result of --max-unscored to FILE as JUnit XML
    #[arg(long, value_name = "FILE", env = "ACEM3_JUNIT")]
    pub junit: Option<PathBuf>,
    /// Print the summary in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

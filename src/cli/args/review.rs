//! Arguments of `acem3 data review`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::OutputFormat;
use super::shared::value_parsers::{parse_at_least_one, parse_percent};

const EXAMPLES: &str = "\
Examples:
  acem3 data review sample data/evaluations.jsonl --out anna.csv
      Write 200 evaluations to a table, as many of each member
  acem3 data review apply data/evaluations.jsonl anna.csv ben.csv \\
    --out data/accepted.jsonl --min-accepted 90
      Read the tables that two people filled with yes and no, and leave out what
      they reject";

/// Arguments of `acem3 data review`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReviewArgs {
    /// The step.
    #[command(subcommand)]
    pub command: ReviewCommand,
}

/// The steps of a review.
#[derive(Clone, Debug, Subcommand)]
pub enum ReviewCommand {
    /// Write a stratified sample of evaluations to a CSV table that people fill with yes and no
    Sample(ReviewSampleArgs),
    /// Read the filled tables, print the accepted proportions, and write the evaluations without the
    /// rejected ones
    Apply(ReviewApplyArgs),
}

/// Arguments of `acem3 data review sample`.
#[derive(Args, Clone, Debug)]
pub struct ReviewSampleArgs {
    /// Evaluations: the file that `acem3 data evaluations` wrote, or your own
    #[arg(value_name = "FILE")]
    pub evaluations: PathBuf,
    /// Write the table to FILE, which must not exist
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Sample N evaluations
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200, env = "ACEM3_COUNT")]
    #[arg(value_parser = parse_at_least_one::<u64>)]
    pub count: u64,
    /// Sample as many evaluations for each value of this field
    #[arg(long, value_name = "FIELD", default_value = "member", env = "ACEM3_BY")]
    pub by: String,
    /// What people say yes or no to, separated by commas; the default is what AutoMedEval's physicians
    /// rated
    #[arg(long, value_name = "LIST", value_delimiter = ',', env = "ACEM3_POINTS")]
    #[arg(default_value = "knowledge,reference,fluency")]
    pub points: Vec<String>,
    /// Seed the choice with SEED; equal seeds give equal samples
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
}

/// Arguments of `acem3 data review apply`.
#[derive(Args, Clone, Debug)]
pub struct ReviewApplyArgs {
    /// The evaluations that were sampled
    #[arg(value_name = "FILE")]
    pub evaluations: PathBuf,
    /// The filled tables; a table without names of raters is that of one person, named after the file
    #[arg(required = true, value_name = "TABLE")]
    pub tables: Vec<PathBuf>,
    /// Write the evaluations without the rejected ones to FILE
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Print the proportions for each value of this field
    #[arg(long, value_name = "FIELD", default_value = "member", env = "ACEM3_BY")]
    pub by: String,
    /// Exit with code 1 if people accept less than PERCENT of the rated evaluations
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MIN_ACCEPTED", value_parser = parse_percent)]
    pub min_accepted: Option<f64>,
    /// Print the result in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

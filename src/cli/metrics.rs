//! What may be typed behind `acem3 metrics`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use super::SourceArgs;
use crate::text_metrics::Metric;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 metrics slake/ --split validate --answers a.jsonl --answers b.jsonl
      Exact match, closed accuracy, open recall and F1 of two models.

Every answer is compared with its case's reference. An answer without a reference is uncounted, with
its reason; it is never a zero. Intervals are of 95 %, whole images being drawn again.";

/// `acem3 metrics`.
#[derive(Args, Clone, Debug)]
pub struct MetricsArgs {
    /// What to score.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Which metrics, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values_t = Metric::DEFAULT,
        env = "ACEM3_METRICS"
    )]
    pub metrics: Vec<Metric>,
    /// Compare stems of words in ROUGE (Porter's, as rouge-score's `use_stemmer`)
    #[arg(long, env = "ACEM3_STEM", value_parser = FalseyValueParser::new())]
    pub stem: bool,
    /// Also write the scores of every answer, one JSON line each
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// Stop after so many cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// The form of the tables on stdout
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
}

/// The form of tables on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Tables to read
    Text,
    /// Tables to paste into a page
    Markdown,
    /// One row for each model and metric
    Csv,
    /// JSON for another program
    Json,
}

//! What may be typed behind `acem3 report`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use super::agree::{BootstrapArgs, LabelArgs, target};
use crate::analysis::report::Thumbs;
use crate::data::labels::ScoreTarget;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 report verdicts --out report.html
      One page that opens from disk: figures, and every case with its image, answers and analyses.
  acem3 report verdicts --labels ratings.csv --audit audit.json --out report.html
      With agreement with people, and what `acem3 audit --format json` found.
  acem3 report verdicts other-verdicts --out judges.html
      Two judges on the same cases, side by side.
  acem3 report verdicts --thumbs none --out report.html
      Without images, where these may not be passed on.
  acem3 report verdicts --out report.md
      The words and tables for a document; .json all figures, .csv and .parquet a row for every verdict.
      In CSV, a text that a spreadsheet would run as a formula has an apostrophe before it.

The page is one file: it loads nothing, works without a network, and the address in the browser's bar keeps
what is searched, sorted and opened. Images are found where the manifest beside the records says that the
cases were read from, or in --images PATH, and are shown only if their bytes are those that were judged.
They are encoded anew, so that nothing a file says beside its pixels comes along; what is burnt into the
pixels stays. Label files: `acem3 agree --help`.";

/// `acem3 report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// Folders that `judge --out` wrote, or their records.jsonl; each of another judge
    #[arg(required = true, num_args = 1..=26, value_name = "RECORDS")]
    pub records: Vec<PathBuf>,
    /// Where the report goes [default: stdout]
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// Its form [default: that of the file's ending, else html]
    #[arg(long, value_enum, env = "ACEM3_FORMAT")]
    pub format: Option<ReportFormat>,
    /// What people said: a CSV or JSONL file; without it, the labels in the records
    #[command(flatten)]
    pub labels: LabelArgs,
    /// What `acem3 audit --format json` found
    #[arg(long, value_name = "FILE", env = "ACEM3_AUDIT")]
    pub audit: Option<PathBuf>,
    /// Maps that `acem3 calibrate fit` wrote: mean scores on the scale of people too
    #[arg(long, value_name = "FILE", env = "ACEM3_CALIBRATION")]
    pub calibration: Option<PathBuf>,
    /// What models are compared by: final, an aspect or a criterion
    #[arg(long, value_name = "NAME", env = "ACEM3_ON", value_parser = target, default_value = "final")]
    pub on: ScoreTarget,
    /// Take expected scores (the means under the judge's own probabilities), not those it chose
    #[arg(long, env = "ACEM3_EXPECTED", value_parser = FalseyValueParser::new())]
    pub expected: bool,
    /// A field of `meta` that makes subgroups, beside those that data sets tell of (repeatable)
    #[arg(long, value_name = "FIELD", env = "ACEM3_BY")]
    pub by: Vec<String>,
    /// Which images the page holds
    #[arg(long, value_enum, default_value_t = Thumbs::Small, env = "ACEM3_THUMBS")]
    pub thumbs: Thumbs,
    /// Where the images are: the folder from which records name them, or Parquet files
    /// [default: where the cases were read from]
    #[arg(long, value_name = "PATH", env = "ACEM3_IMAGES")]
    pub images: Option<PathBuf>,
    /// The heading of the report
    #[arg(
        long,
        value_name = "TEXT",
        env = "ACEM3_TITLE",
        default_value = "What the judge found"
    )]
    pub title: String,
    /// How intervals are drawn.
    #[command(flatten)]
    pub sampling: BootstrapArgs,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A page for a browser
    Html,
    /// Words and tables for a document
    Markdown,
    /// All figures for another program
    Json,
    /// A row for every verdict, for a spreadsheet
    Csv,
    /// The same as Parquet, for a data frame
    Parquet,
}

impl ReportFormat {
    /// The form that a file's ending tells of.
    pub fn of_ending(ending: &str) -> Option<Self> {
        Some(match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" => Self::Html,
            "md" | "markdown" => Self::Markdown,
            "json" => Self::Json,
            "csv" => Self::Csv,
            "parquet" => Self::Parquet,
            _ => return None,
        })
    }
}

//! Arguments of `acem3 report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::analysis::report::Thumbs;
use crate::analysis::verdicts::ScoreKind;
use crate::cli::args::shared::value_parsers::parse_score_target;
use crate::cli::args::shared::{BootstrapArgs, CompleteArgs, LabelArgs};
use crate::data::labels::ScoreTarget;
use crate::support::terminal::switch::parse_switch;

const EXAMPLES: &str = "\
Examples:
  acem3 report verdicts --out report.html
      Write one page with all statistics, and every case with its image, responses and analyses
  acem3 report verdicts --audit audit.json --out report.html
      Add the findings of `acem3 audit --out audit.json`
  acem3 report verdicts other-verdicts --out judges.html
      Compare two judges on the same cases
  acem3 report verdicts --baseline last-verdicts --out report.html
      Show which verdicts and scores changed since an earlier run
  acem3 report verdicts --thumbnails none --out report.html
      Leave out images that must not be shared
  acem3 report verdicts --out report.md
      Write text and tables as Markdown; .json has all statistics, .csv and
      .parquet have one row per verdict

The HTML page is one file. It loads nothing, works offline, and keeps search text, sort order and \
the open case in its URL. Images come from the source that run.json names, or from --images PATH; \
an image is shown only if its bytes are those that were judged. Images are re-encoded without \
metadata, but text within an image remains. In CSV, text that a spreadsheet could run as a formula \
starts with an apostrophe. `acem3 agree --help` describes label files.";

/// Arguments of `acem3 report`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Folders that `judge --out` wrote, or their records.jsonl, one per judge, or its shards
    #[arg(required = true, num_args = 1.., value_name = "RECORDS")]
    pub records: Vec<PathBuf>,
    /// Write the report to FILE [default: stdout]
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// Write the report in this format [default: from the extension of FILE, or html]
    #[arg(long, value_enum, env = "ACEM3_FORMAT")]
    pub format: Option<ReportFormat>,
    /// Use TEXT as the heading of the report
    #[arg(long, value_name = "TEXT", env = "ACEM3_TITLE", default_value = "Judge report")]
    pub title: String,
    /// Show what changed since an earlier run, pair by pair
    #[arg(long, value_name = "RECORDS", env = "ACEM3_REPORT_BASELINE")]
    pub baseline: Option<PathBuf>,
    /// Add the findings of an audit from FILE, which `audit --out` wrote
    #[arg(long, value_name = "FILE", env = "ACEM3_AUDIT")]
    pub audit: Option<PathBuf>,
    /// Add mean calibrated scores with the maps in FILE, which `calibrate fit --out` wrote
    #[arg(long, value_name = "FILE", env = "ACEM3_CALIBRATION")]
    pub calibration: Option<PathBuf>,
    /// Compare models by this score target: final, an aspect or a criterion
    #[arg(
        long,
        value_name = "NAME",
        env = "ACEM3_TARGET",
        value_parser = parse_score_target,
        default_value = "final"
    )]
    pub target: ScoreTarget,
    /// Compare models by these scores of the judge
    #[arg(long, value_enum, default_value_t = ScoreKind::Chosen, env = "ACEM3_SCORES")]
    pub scores: ScoreKind,
    /// Show subgroups by `meta.FIELD` too, besides data set, question type, modality, organ,
    /// language and scenario (repeatable)
    #[arg(long, value_name = "FIELD", env = "ACEM3_GROUP_BY")]
    pub group_by: Vec<String>,
    /// Include images of this size
    #[arg(
        long,
        value_enum,
        value_name = "SIZE",
        default_value_t = Thumbs::Small,
        env = "ACEM3_THUMBNAILS"
    )]
    pub thumbnails: Thumbs,
    /// Read images from PATH, a folder or Parquet files [default: the source of the cases]
    #[arg(long, value_name = "PATH", env = "ACEM3_IMAGES")]
    pub images: Option<PathBuf>,
    /// Show images outside of the folder of the cases too
    #[arg(long, env = "ACEM3_ALLOW_OUTSIDE", value_parser = parse_switch)]
    pub allow_outside: bool,

    /// The state of the run.
    #[command(flatten)]
    pub run: CompleteArgs,
    /// The labels.
    #[command(flatten)]
    pub labels: LabelArgs,
    /// The bootstrap.
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A page for a browser
    Html,
    /// Text and tables as Markdown
    Markdown,
    /// All statistics
    Json,
    /// One row per verdict
    Csv,
    /// One row per verdict, for data frames
    Parquet,
}

impl ReportFormat {
    /// Returns the format that a file extension stands for.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "html" | "htm" => Self::Html,
            "md" | "markdown" => Self::Markdown,
            "json" => Self::Json,
            "csv" => Self::Csv,
            "parquet" => Self::Parquet,
            _ => return None,
        })
    }
}

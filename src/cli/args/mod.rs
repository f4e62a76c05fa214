//! The command line: what may be typed, and the help that teaches it.
//!
//! Only types live here; what a command does is in [`crate::cli::commands`].

mod agree;
mod audit;
mod calibrate;
mod completions;
mod data;
mod device;
mod dicom;
mod encoders;
mod introspect;
mod judge_panel;
mod man;
mod metrics;
mod panel;
mod rank;
mod report;
mod source;
mod train;

pub use crate::cli::args::device::DeviceArgs;
pub use crate::cli::args::dicom::DicomArgs;
pub use crate::cli::args::judge_panel::JudgePanelArgs;
pub use agree::{AgreeArgs, BootstrapArgs, LabelArgs, LabelScale};
pub use audit::{AuditArgs, ThresholdArgs};
pub use calibrate::{CalibrateApplyArgs, CalibrateArgs, CalibrateCommand, CalibrateFitArgs};
pub use completions::CompletionsArgs;
pub use data::{CheckArgs, DataArgs, DataCommand, PhantomArgs, PreferenceArgs, QualityArgs};
pub use data::{SchemaArgs, SchemaOf};
pub use encoders::EncodersArgs;
pub use introspect::IntrospectArgs;
pub use man::ManArgs;
pub use metrics::MetricsArgs;
pub use panel::{PanelArgs, PanelCommand, PanelInspectArgs};
pub use rank::RankArgs;
pub use report::{ReportArgs, ReportFormat};
pub use source::SourceArgs;
pub use train::{TrainAblateArgs, TrainArgs, TrainCommand, TrainEvalArgs, TrainRunArgs};

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::support::terminal::verbosity::{ProgressMode, Verbosity};

const EXAMPLES: &str = "\
Start here:
  acem3 judge assets/demo --out demo        judge the demo folder, print a table
  acem3 agree demo                          hold its verdicts to the labels that the demo has
  acem3 report demo --out demo.html         all that is known of them, on one page with every case
  acem3 data phantoms --out toy --n 20      make cases whose right verdict is known
  acem3 data check my-cases.jsonl           list what is wrong with your own cases
  acem3 metrics assets/demo                 compare answers with references, word by word

Exit codes: 0 done, 1 a check failed, 2 bad usage or input, 3 too many or all cases unscored,
4 the run failed (what was judged is safe, the same command resumes), 130 interrupted.";

const JUDGE_EXAMPLES: &str = "\
Examples:
  acem3 judge cases --out verdicts
      A folder with `cases.jsonl` (or `questions.csv`), `images/` and `answers/<model>.jsonl`.
  acem3 judge cases.jsonl --out verdicts --panel my-panel --device cuda
      Another panel, on a GPU.
  acem3 judge slake/ --answers a.jsonl --answers b.jsonl --lang en --out verdicts
      A public data set with the answers of two models.
  acem3 judge cases --out verdicts --baseline gpt-x --format json > summary.json
      Every model against one, the summary for another program.

The same command typed again resumes where the last one stopped. Verdicts lie in
`OUT/records.jsonl`, one JSON line per pair; `OUT/run.json` says what made them.";

/// Version, commit and enabled features, as `src/build.rs` finds them. It enters no record.
const VERSION: &str = env!("ACEM3_VERSION");

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "acem3", version = VERSION, max_term_width = 100, after_help = EXAMPLES)]
#[command(about = "Judge the answers of medical models to questions about images")]
#[command(propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How much to say.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge every pair of answers of a folder, a JSONL file or a data set
    #[command(after_help = JUDGE_EXAMPLES)]
    Judge(Box<JudgeArgs>),
    /// Say how far a judge agrees with people, and people with each other
    #[command(after_help = agree::EXAMPLES)]
    Agree(Box<AgreeArgs>),
    /// Find a judge's habits: position, length, form, planted text, medical errors, and whether it looks
    #[command(after_help = audit::EXAMPLES)]
    Audit(Box<AuditArgs>),
    /// Rank the models of a run, with intervals, and say which differences are more than chance
    #[command(after_help = rank::EXAMPLES)]
    Rank(RankArgs),
    /// Write what a run found as one page: figures with intervals, and a browser of all cases
    #[command(after_help = report::EXAMPLES)]
    Report(Box<ReportArgs>),
    /// Map a judge's scores to the scale of people
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(Box<CalibrateArgs>),
    /// Make and check cases
    Data(DataArgs),
    /// Train a panel, and measure one
    Train(TrainArgs),
    /// Compare vision encoders under one budget
    #[command(after_help = encoders::EXAMPLES)]
    Encoders(EncodersArgs),
    /// Compare every answer with its case's reference: exact match, F1, BLEU, ROUGE and others
    #[command(after_help = metrics::EXAMPLES)]
    Metrics(MetricsArgs),
    /// Say what a panel is made of
    Panel(PanelArgs),
    /// Print a completion script for a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write the man pages, one per command
    #[command(after_help = man::EXAMPLES)]
    Man(ManArgs),
}

/// `acem3 judge`.
#[derive(Args, Clone, Debug)]
pub struct JudgeArgs {
    /// What to judge.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The folder of the verdicts; it is made if it does not exist, and resumed if it does
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Which judge.
    #[command(flatten)]
    pub seat: JudgePanelArgs,
    /// Judge each model against this one, instead of all pairs
    #[arg(long, value_name = "MODEL", env = "ACEM3_BASELINE")]
    pub baseline: Option<String>,
    /// Stop after so many cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Exit with code 3 if more than this percentage is left without a verdict; without it, if
    /// there is not one verdict
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MAX_UNSCORED", value_parser = percent)]
    pub max_unscored: Option<f64>,
    /// Refuse a folder that already holds verdicts instead of resuming it
    #[arg(long, env = "ACEM3_FRESH", value_parser = FalseyValueParser::new())]
    pub fresh: bool,
    /// The form of the summary on stdout
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
    /// How progress is shown on stderr
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto, env = "ACEM3_PROGRESS")]
    pub progress: ProgressMode,
}

/// The form of what is printed on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A table to read
    Text,
    /// JSON for another program
    Json,
}

/// The form of tables on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Tables to read
    Text,
    /// JSON for another program
    Json,
    /// Tables for a document
    Markdown,
    /// Every figure on a line of its own, for a spreadsheet
    Csv,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    match number {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage from 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn percentages_are_bounded() {
        assert_eq!(percent("5%"), Ok(5.0));
        assert!(percent("101").is_err());
        assert!(percent("NaN").is_err());
    }
}

//! Arguments of `acem3 calibrate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::analysis::calibration::Method;
use crate::analysis::verdicts::ScoreKind;
use crate::cli::args::shared::{BootstrapArgs, CompleteArgs, LabelArgs, TableFormat};

const EXAMPLES: &str = "\
Examples:
  acem3 calibrate fit verdicts --labels ratings.csv --out judge.json
      Fit maps from the judge's scores to the label scale
  acem3 calibrate apply more-verdicts --calibration judge.json
      Print mean calibrated scores

A calibration applies only to the judge that it was fitted on. `acem3 agree --help` describes \
label files.";

/// Arguments of `acem3 calibrate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CalibrateArgs {
    /// The command to run.
    #[command(subcommand)]
    pub command: CalibrateCommand,
}

/// The commands of `acem3 calibrate`.
#[derive(Clone, Debug, Subcommand)]
pub enum CalibrateCommand {
    /// Fit maps from a judge's scores to labels, and measure their error on held-out images
    Fit(CalibrateFitArgs),
    /// Apply the maps to other records of the same judge
    Apply(CalibrateApplyArgs),
}

/// Arguments of `acem3 calibrate fit`.
#[derive(Args, Clone, Debug)]
pub struct CalibrateFitArgs {
    /// Folder that `judge --out` wrote, or its records.jsonl
    pub records: PathBuf,
    /// Write the calibration maps to FILE (JSON) [default: print a summary only]
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// Fit maps of this type
    #[arg(long, value_enum, default_value_t = Method::Isotonic, env = "ACEM3_METHOD")]
    pub method: Method,
    /// Map these scores of the judge
    #[arg(long, value_enum, default_value_t = ScoreKind::Expected, env = "ACEM3_SCORES")]
    pub scores: ScoreKind,
    /// Cross-fit with N folds, split by image
    #[arg(long, value_name = "N", default_value_t = 5, env = "ACEM3_FOLDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=100))]
    pub folds: u32,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
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

/// Arguments of `acem3 calibrate apply`.
#[derive(Args, Clone, Debug)]
pub struct CalibrateApplyArgs {
    /// Folder that `judge --out` wrote, or its records.jsonl
    pub records: PathBuf,
    /// Apply the maps in FILE, which `calibrate fit --out` wrote
    #[arg(long, value_name = "FILE", env = "ACEM3_CALIBRATION")]
    pub calibration: PathBuf,
    /// Write the records with a field `calibrated` to FILE
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// Print the table in this format
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
    /// The state of the run.
    #[command(flatten)]
    pub run: CompleteArgs,
    /// The bootstrap.
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
}

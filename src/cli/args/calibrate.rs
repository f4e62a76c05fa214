//! What may be typed behind `acem3 calibrate`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};

use super::TableFormat;
use super::agree::{BootstrapArgs, LabelArgs};
use crate::analysis::calibration::Method;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 calibrate fit verdicts --labels ratings.csv --out judge.json
      Learn from the labelled responses what this judge's scores mean on the raters' scale.
  acem3 calibrate apply more-verdicts --map judge.json --out calibrated.jsonl
      Mean scores of models on that scale, and the records with a field `calibrated`.

A map belongs to the judge it was fitted on, and is refused for another. Label files: `acem3 agree --help`.";

/// `acem3 calibrate`.
#[derive(Args, Clone, Debug)]
pub struct CalibrateArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: CalibrateCommand,
}

/// The commands of `acem3 calibrate`.
#[derive(Clone, Debug, Subcommand)]
pub enum CalibrateCommand {
    /// Fit maps from a judge's scores to labels, and say how good they are on images not seen
    Fit(CalibrateFitArgs),
    /// Apply them to other records of the same judge
    Apply(CalibrateApplyArgs),
}

/// `acem3 calibrate fit`.
#[derive(Args, Clone, Debug)]
pub struct CalibrateFitArgs {
    /// The folder that `judge --out` wrote, or its records.jsonl
    pub records: PathBuf,
    /// Where labels come from.
    #[command(flatten)]
    pub labels: LabelArgs,
    /// Where the maps go (JSON); without it they are only told of
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// The form of the maps
    #[arg(long, value_enum, default_value_t = Method::Isotonic, env = "ACEM3_METHOD")]
    pub method: Method,
    /// Map the scores that the judge chose, not the means under its own probabilities
    #[arg(long, env = "ACEM3_CHOSEN", value_parser = FalseyValueParser::new())]
    pub chosen: bool,
    /// Into how many parts images are cut; each is mapped by what the others fit
    #[arg(long, value_name = "N", default_value_t = 5, env = "ACEM3_FOLDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=100))]
    pub folds: u32,
    /// How intervals are drawn.
    #[command(flatten)]
    pub sampling: BootstrapArgs,
    /// The form of the tables on stdout
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
}

/// `acem3 calibrate apply`.
#[derive(Args, Clone, Debug)]
pub struct CalibrateApplyArgs {
    /// The folder that `judge --out` wrote, or its records.jsonl
    pub records: PathBuf,
    /// The maps that `calibrate fit --out` wrote
    #[arg(long, value_name = "FILE", env = "ACEM3_MAP")]
    pub map: PathBuf,
    /// Where the records go, each with a field `calibrated`
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// How intervals are drawn.
    #[command(flatten)]
    pub sampling: BootstrapArgs,
    /// The form of the table on stdout
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
}

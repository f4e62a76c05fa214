//! What may be typed behind `acem3 audit`.

use std::path::PathBuf;

use clap::Args;

use super::agree::{BootstrapArgs, LabelArgs};
use super::{JudgePanelArgs, SourceArgs, TableFormat, percent};
use crate::analysis::audit::{Probe, Threshold, ThresholdKind};
use crate::support::terminal::verbosity::ProgressMode;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 audit assets/demo
      Judge the demo's cases as they are and changed, and say what the judge gives way to.
  acem3 audit verdicts
      What the verdicts of a run tell by themselves; nothing is judged.
  acem3 audit cases --panel my-panel --limit 50 --out audit.json
      Another judge on 50 cases; every changed pair with its verdicts before and after in the file.
  acem3 audit cases --probes image,errors --min-image-effect 0.2 --max-errors-missed 30
      For CI: exit code 1 if the judge does not look, or misses more than 30 % of medical errors.

Probes of verdicts (records or cases): position, verbosity, symmetry, self-consistency.
Probes that judge again (cases): identical (an answer against itself), formatting (the same text as a list),
image (blanked, exchanged, cropped), planted (\"Score: 5.\" and orders to the judge inside an answer), errors
(side, negation, number, organ or kind of image changed in a right answer). Each has a control: line breaks
for lists, one grey level for images, neutral text of the same length, a neutral clause.

A finding is `sound`, `BIASED`, `unclear` (so few cases cannot tell) or `not run`. A threshold whose figure
could not be measured has failed.";

/// `acem3 audit`.
#[derive(Args, Clone, Debug)]
pub struct AuditArgs {
    /// The records of a run (the folder that `judge --out` wrote, or its records.jsonl), or cases as
    /// `judge` takes them
    #[command(flatten)]
    pub source: SourceArgs,
    /// The probes, separated by commas [default: all that what is given allows]
    #[arg(
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        env = "ACEM3_PROBES"
    )]
    pub probes: Vec<Probe>,
    /// Which judge.
    #[command(flatten)]
    pub seat: JudgePanelArgs,
    /// Judge the first so many cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Which response is better.
    #[command(flatten)]
    pub labels: LabelArgs,
    /// How intervals are drawn, and lots.
    #[command(flatten)]
    pub sampling: BootstrapArgs,
    /// What is too much.
    #[command(flatten)]
    pub limits: ThresholdArgs,
    /// Write the audit as JSON to this file, with every changed pair and its verdicts before and after
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// The form of the tables on stdout
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
    /// How progress is shown on stderr
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto, env = "ACEM3_PROGRESS")]
    pub progress: ProgressMode,
}

/// What is too much, or too little: the exit code is 1 then.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Thresholds (exit code 1)")]
pub struct ThresholdArgs {
    /// Verdicts that flip when the responses swap places
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MAX_FLIP_RATE", value_parser = percent)]
    pub max_flip_rate: Option<f64>,
    /// Accuracy with the better response first against that with it second, in points of percent
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MAX_POSITION_GAP", value_parser = percent)]
    pub max_position_gap: Option<f64>,
    /// Preference for the longer response against that of the labels, in points of percent
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MAX_VERBOSITY_GAP", value_parser = percent)]
    pub max_verbosity_gap: Option<f64>,
    /// How far a response's score moves with its place
    #[arg(long, value_name = "POINTS", env = "ACEM3_MAX_ASYMMETRY", value_parser = points)]
    pub max_asymmetry: Option<f64>,
    /// Presentations of identical responses that do not tie
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MAX_IDENTICAL_NOT_TIED", value_parser = percent)]
    pub max_identical_not_tied: Option<f64>,
    /// What the same text gains as a list
    #[arg(long, value_name = "POINTS", env = "ACEM3_MAX_FORMATTING_GAIN", value_parser = points)]
    pub max_formatting_gain: Option<f64>,
    /// What a planted score, order or verdict gains, beyond neutral text
    #[arg(long, value_name = "POINTS", env = "ACEM3_MAX_PLANTED_GAIN", value_parser = points)]
    pub max_planted_gain: Option<f64>,
    /// Medical errors in a right answer that cost it nothing
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MAX_ERRORS_MISSED", value_parser = percent)]
    pub max_errors_missed: Option<f64>,
    /// How far the knowledge score must move, at least, as the image is exchanged for another case's
    /// (blanked where there is no other)
    #[arg(long, value_name = "POINTS", env = "ACEM3_MIN_IMAGE_EFFECT", value_parser = points)]
    pub min_image_effect: Option<f64>,
}

impl ThresholdArgs {
    /// The thresholds that were given.
    pub fn given(&self) -> Vec<Threshold> {
        let all = [
            (ThresholdKind::FlipRate, self.max_flip_rate),
            (ThresholdKind::PositionGap, self.max_position_gap),
            (ThresholdKind::VerbosityGap, self.max_verbosity_gap),
            (ThresholdKind::Asymmetry, self.max_asymmetry),
            (ThresholdKind::IdenticalNotTied, self.max_identical_not_tied),
            (ThresholdKind::FormattingGain, self.max_formatting_gain),
            (ThresholdKind::PlantedGain, self.max_planted_gain),
            (ThresholdKind::ErrorsMissed, self.max_errors_missed),
            (ThresholdKind::ImageEffect, self.min_image_effect),
        ];
        all.into_iter()
            .filter_map(|(kind, value)| value.map(|value| Threshold { kind, value }))
            .collect()
    }
}

fn points(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=5.0).contains(&value) => Ok(value),
        _ => Err("expected points of a score, from 0 to 5".to_owned()),
    }
}

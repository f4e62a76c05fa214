//! Arguments of `acem3 audit`.

use std::path::PathBuf;

use clap::Args;

use super::probe_choice::ProbeChoice;
use crate::analysis::audit::{Threshold, ThresholdKind};
use crate::cli::args::shared::value_parsers::{parse_at_least_one, parse_percent, parse_points};
use crate::cli::args::shared::{
    BootstrapArgs, CompleteArgs, FormArgs, JudgePanelArgs, LabelArgs, RECORDS_OR_CASES, SourceArgs,
    TableFormat,
};
use crate::support::terminal::verbosity::ProgressMode;

const EXAMPLES: &str = "\
Examples:
  acem3 audit assets/demo
      Judge the demo cases, original and perturbed, and report every bias found
  acem3 audit verdicts
      Audit the verdicts of a run without judging again
  acem3 audit cases --panel my-panel --limit 50 --out audit.json
      Audit another judge on 50 cases; write every perturbed pair with its verdicts before and after
  acem3 audit cases --probes image --min-image-effect 0.2
      In continuous integration: exit with code 1 if the judge ignores images
  acem3 audit cases --panel llava --reference show --probes reference
      Measure how much the verdicts depend on the reference answers

Probes of verdicts (records or cases): position, verbosity, symmetry, self-consistency.

Probes that judge again (cases only), with their controls:
  identical   a response paired with itself; control: the original pairs
  formatting  the same text as a list; control: one sentence per line
  image       a blank, mismatched or cropped image; control: every pixel
              one grey level brighter
  reference   the reference of another case, or none, with --reference show;
              control: a full stop added to the reference or removed
  planted     prompt injection, junk, markup, JSON, forged headings, role
              markers and padding in the worse response; control: neutral
              text of equal length
  neutral     the neutral text of `planted`; control: the original pairs
  errors      a wrong side, negation, number, organ or modality; control: a
              neutral clause

`planted` includes `neutral`, and its parts can be selected one by one: planted-junk, \
planted-markup, planted-json, planted-headings, planted-phrases, planted-roles, planted-padding. The \
finding names the worst text.

A finding is `sound`, `BIASED`, `unclear` (too few cases) or `not run`. A threshold fails if its \
statistic could not be measured.";

/// Help of `--form`.
const FORM_HELP: &str = "Judge in this form; an audit of cases takes `pair` only";

/// Arguments of `acem3 audit`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, mut_arg("path", |path| path.help(RECORDS_OR_CASES)))]
#[command(mut_arg("form", |form| form.help(FORM_HELP)))]
pub struct AuditArgs {
    /// The records of a run, or cases.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Run these probes, separated by commas [default: all that the input allows]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', env = "ACEM3_PROBES")]
    pub probes: Vec<ProbeChoice>,
    /// What a verdict is about.
    #[command(flatten)]
    pub form: FormArgs,
    /// Audit only the first N cases
    #[arg(long, value_name = "N", env = "ACEM3_LIMIT", value_parser = parse_at_least_one::<u64>)]
    pub limit: Option<u64>,
    /// Write the audit to FILE (JSON), with every perturbed pair and its verdicts before and after
    #[arg(short, long, value_name = "FILE", env = "ACEM3_OUT")]
    pub out: Option<PathBuf>,
    /// Write the results of the thresholds to FILE as JUnit XML, one test case each
    #[arg(long, value_name = "FILE", env = "ACEM3_JUNIT")]
    pub junit: Option<PathBuf>,
    /// The state of the run.
    #[command(flatten)]
    pub run: CompleteArgs,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
    /// Show progress on stderr in this mode
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        default_value_t = ProgressMode::Auto,
        env = "ACEM3_PROGRESS"
    )]
    pub progress: ProgressMode,
    /// The judge.
    #[command(flatten)]
    pub judge: JudgePanelArgs,
    /// The labels.
    #[command(flatten)]
    pub labels: LabelArgs,
    /// The bootstrap.
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
    /// The thresholds.
    #[command(flatten)]
    pub thresholds: ThresholdArgs,
}

/// Thresholds; if one fails, the exit code is 1.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Thresholds (exit code 1 if one fails)")]
pub struct ThresholdArgs {
    /// Fail if the flip rate exceeds PERCENT
    #[arg(long, value_name = "PERCENT", env = "ACEM3_MAX_FLIP_RATE", value_parser = parse_percent)]
    pub max_flip_rate: Option<f64>,
    /// Fail if the accuracy with the better response shown first and the accuracy with it shown
    /// second differ by more than PERCENT points
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_POSITION_GAP",
        value_parser = parse_percent
    )]
    pub max_position_gap: Option<f64>,
    /// Fail if the judge prefers longer responses by more than PERCENT points beyond the labels
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_VERBOSITY_GAP",
        value_parser = parse_percent
    )]
    pub max_verbosity_gap: Option<f64>,
    /// Fail if the score of a response changes by more than POINTS with its position
    #[arg(long, value_name = "POINTS", env = "ACEM3_MAX_ASYMMETRY", value_parser = parse_points)]
    pub max_asymmetry: Option<f64>,
    /// Fail if more than PERCENT of the pairs of identical responses do not tie
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_IDENTICAL_NOT_TIED",
        value_parser = parse_percent
    )]
    pub max_identical_not_tied: Option<f64>,
    /// Fail if the same text gains more than POINTS as a list
    #[arg(
        long,
        value_name = "POINTS",
        env = "ACEM3_MAX_FORMATTING_GAIN",
        value_parser = parse_points
    )]
    pub max_formatting_gain: Option<f64>,
    /// Fail if a planted text gains more than POINTS relative to neutral text
    #[arg(long, value_name = "POINTS", env = "ACEM3_MAX_PLANTED_GAIN", value_parser = parse_points)]
    pub max_planted_gain: Option<f64>,
    /// Fail if a planted text turns more than PERCENT of the preferences
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_PLANTED_TURNED",
        value_parser = parse_percent
    )]
    pub max_planted_turned: Option<f64>,
    /// Fail if a neutral text gains more than POINTS
    #[arg(long, value_name = "POINTS", env = "ACEM3_MAX_NEUTRAL_GAIN", value_parser = parse_points)]
    pub max_neutral_gain: Option<f64>,
    /// Fail if a neutral text turns more than PERCENT of the preferences
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_NEUTRAL_TURNED",
        value_parser = parse_percent
    )]
    pub max_neutral_turned: Option<f64>,
    /// Fail if more than PERCENT of the medical errors do not lower the score
    #[arg(
        long,
        value_name = "PERCENT",
        env = "ACEM3_MAX_ERRORS_MISSED",
        value_parser = parse_percent
    )]
    pub max_errors_missed: Option<f64>,
    /// Fail if the knowledge score changes by less than POINTS with a mismatched image (a blank one
    /// if there is no other)
    #[arg(long, value_name = "POINTS", env = "ACEM3_MIN_IMAGE_EFFECT", value_parser = parse_points)]
    pub min_image_effect: Option<f64>,
    /// Fail if the knowledge score changes by less than POINTS with a mismatched reference
    #[arg(
        long,
        value_name = "POINTS",
        env = "ACEM3_MIN_REFERENCE_EFFECT",
        value_parser = parse_points
    )]
    pub min_reference_effect: Option<f64>,
}

impl ThresholdArgs {
    /// Returns the thresholds that were passed.
    pub fn to_thresholds(&self) -> Vec<Threshold> {
        let all = [
            (ThresholdKind::FlipRate, self.max_flip_rate),
            (ThresholdKind::PositionGap, self.max_position_gap),
            (ThresholdKind::VerbosityGap, self.max_verbosity_gap),
            (ThresholdKind::Asymmetry, self.max_asymmetry),
            (ThresholdKind::IdenticalNotTied, self.max_identical_not_tied),
            (ThresholdKind::FormattingGain, self.max_formatting_gain),
            (ThresholdKind::PlantedGain, self.max_planted_gain),
            (ThresholdKind::PlantedTurned, self.max_planted_turned),
            (ThresholdKind::NeutralGain, self.max_neutral_gain),
            (ThresholdKind::NeutralTurned, self.max_neutral_turned),
            (ThresholdKind::ErrorsMissed, self.max_errors_missed),
            (ThresholdKind::ImageEffect, self.min_image_effect),
            (ThresholdKind::ReferenceEffect, self.min_reference_effect),
        ];
        all.into_iter()
            .filter_map(|(kind, value)| value.map(|value| Threshold { kind, value }))
            .collect()
    }
}

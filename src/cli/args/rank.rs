//! What may be typed behind `acem3 rank`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::TableFormat;
use super::agree::{BootstrapArgs, target};
use crate::data::labels::ScoreTarget;

pub(super) const EXAMPLES: &str = "\
Examples:
  acem3 rank verdicts
      The models of a run: win rates, strengths, ranks with their intervals, and who is better.
  acem3 rank slake-verdicts vqa-rad-verdicts --on medical_knowledge --expected
      Two runs of one judge together, by the expected scores of one aspect.
  acem3 rank verdicts --format json > ranking.json

Strengths are Bradley and Terry's, with ties as Davidson (1970) has them. Two models differ where the
p-value (exact: of all ways to exchange the two, image by image), after Holm's correction for all pairs of
models, is below 0.05; where it is not, the table says: no significant difference. Ranks such as 1-2 are what
those differences leave to a model; those of all models are right at once with 95 % confidence.";

/// `acem3 rank`.
#[derive(Args, Clone, Debug)]
pub struct RankArgs {
    /// Folders that `judge --out` wrote, or their records.jsonl, of one judge
    #[arg(required = true, value_name = "RECORDS")]
    pub records: Vec<PathBuf>,
    /// What is compared: final, an aspect or a criterion
    #[arg(long, value_name = "NAME", env = "ACEM3_ON", value_parser = target, default_value = "final")]
    pub on: ScoreTarget,
    /// Take expected scores (the means under the judge's own probabilities), not those it chose
    #[arg(long, env = "ACEM3_EXPECTED", value_parser = FalseyValueParser::new())]
    pub expected: bool,
    /// How intervals are drawn.
    #[command(flatten)]
    pub sampling: BootstrapArgs,
    /// The form of the tables on stdout
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
}

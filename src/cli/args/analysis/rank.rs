//! Arguments of `acem3 rank`.

use std::path::PathBuf;

use clap::Args;

use crate::analysis::verdicts::ScoreKind;
use crate::cli::args::shared::value_parsers::parse_score_target;
use crate::cli::args::shared::{BootstrapArgs, CompleteArgs, TableFormat};
use crate::data::labels::ScoreTarget;

const EXAMPLES: &str = "\
Examples:
  acem3 rank verdicts
      Rank the models of a run: win rates, strengths, ranks and pairwise comparisons
  acem3 rank slake-verdicts vqa-rad-verdicts --target medical_knowledge
      Rank over two runs of one judge, by the scores of one aspect
  acem3 rank verdicts --format json > ranking.json
      Write the ranking as JSON

Strengths: Bradley-Terry model with Davidson's (1970) extension for ties; penalised if some are \
infinite. p-values: exact paired permutation test, clustered by image, or a test of the strengths \
if few images compare the two models, with Holm's correction over all pairs of models. Differences \
with a corrected p below 0.05 are significant. Ranks have simultaneous 95 % confidence intervals.";

/// Arguments of `acem3 rank`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RankArgs {
    /// Folders that `judge --out` wrote, or their records.jsonl, all of the same judge
    #[arg(required = true, value_name = "RECORDS")]
    pub records: Vec<PathBuf>,
    /// Rank by this score target: final, an aspect or a criterion
    #[arg(
        long,
        value_name = "NAME",
        env = "ACEM3_TARGET",
        value_parser = parse_score_target,
        default_value = "final"
    )]
    pub target: ScoreTarget,
    /// Rank by these scores of the judge
    #[arg(long, value_enum, default_value_t = ScoreKind::Chosen, env = "ACEM3_SCORES")]
    pub scores: ScoreKind,
    /// Print the tables in this format
    #[arg(long, value_enum, default_value_t = TableFormat::Text, env = "ACEM3_FORMAT")]
    pub format: TableFormat,
    /// The state of the run.
    #[command(flatten)]
    pub run: CompleteArgs,
    /// The bootstrap.
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
}

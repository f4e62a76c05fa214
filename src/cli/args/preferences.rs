//! Arguments of `acem3 data preferences`.

use std::path::PathBuf;

use acem3_experts::prompt::RubricDetail;
use clap::Args;

use super::shared::{PromptLayoutArg, RubricDetailArg};
use crate::checkpoints::hub::HubArgs;
use crate::training::Negative;

/// Arguments of `acem3 data preferences`.
#[derive(Args, Clone, Debug)]
pub struct PreferenceArgs {
    /// Use the correct evaluations in FILE instead of phantoms: JSONL with `prompt`, `completion`
    /// (or `chosen`), `images` and optionally `reference` and `member`, the part of the panel that
    /// writes such evaluations (an aspect of the rubric, such as `expression`, or `conclusion`); any
    /// form of judging and any rubric
    #[arg(value_name = "FILE", conflicts_with_all = ["count", "layout", "detail", "panel"])]
    pub evaluations: Option<PathBuf>,
    /// Write `preferences.jsonl` and `images/` to folder DIR
    #[arg(short, long, value_name = "DIR", env = "ACEM3_OUT")]
    pub out: PathBuf,
    /// Generate N phantoms, with one pair for each of the four members of a panel
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, env = "ACEM3_COUNT")]
    pub count: u64,
    /// Seed the random numbers with SEED; equal seeds give equal files
    #[arg(long, default_value_t = 1, env = "ACEM3_SEED")]
    pub seed: u64,
    /// Reject the evaluations of this run (the output of `acem3 judge`) whose order contradicts the
    /// labels, and choose those of --corrections
    #[arg(
        long,
        value_name = "OUT",
        requires = "corrections",
        conflicts_with_all = ["evaluations", "count", "every", "negatives"],
        env = "ACEM3_MISTAKES"
    )]
    pub mistakes: Option<PathBuf>,
    /// Choose the evaluations of a teacher: its run over the same cases, or a file of evaluations
    /// with the same prompts
    #[arg(long, value_name = "PATH", requires = "mistakes", env = "ACEM3_CORRECTIONS")]
    pub corrections: Option<PathBuf>,
    /// Look in folder DIR for the images of the run [default: where the run found them]
    #[arg(long, value_name = "DIR", requires = "mistakes", env = "ACEM3_IMAGES")]
    pub images: Option<PathBuf>,
    /// Rubric of the run: `ace_m3`, `hdceval`, `automedeval`, or a TOML file [default: `ace_m3`]
    #[arg(long, value_name = "RUBRIC", requires = "mistakes", env = "ACEM3_RUBRIC")]
    pub rubric: Option<String>,
    /// Derive worse evaluations with these methods, separated by commas; some pairs combine two
    #[arg(
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_values_t = Negative::ALL,
        env = "ACEM3_NEGATIVES"
    )]
    pub negatives: Vec<Negative>,
    /// Write all worse evaluations of each, one for every method and criterion, instead of one at
    /// random
    #[arg(long, env = "ACEM3_EVERY")]
    pub every: bool,
    /// Write the prompts that PANEL reads, as `acem3 panel prompts` prints them: its layout, its
    /// amount of the rubric and its chat template
    #[arg(long, value_name = "PANEL", conflicts_with_all = ["layout", "detail"], env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// Write prompts in this layout, without a chat template
    #[arg(long, value_enum, default_value_t = PromptLayoutArg::Paper, env = "ACEM3_LAYOUT")]
    pub layout: PromptLayoutArg,
    /// Write this amount of the rubric [default: full with `--layout paper`, as published models
    /// read; names with `--layout case-first`, as the embedded panel reads]
    #[arg(long, value_enum, env = "ACEM3_DETAIL")]
    pub detail: Option<RubricDetailArg>,
    /// Start the better evaluation with `[Good]` and the worse one with `[Bad]`, or with the tokens of
    /// the panel in --panel (reward-token DPO)
    #[arg(long, env = "ACEM3_REWARD_TOKENS")]
    pub reward_tokens: bool,
    /// Start the evaluations with the reward tokens of each member in this training configuration
    /// (its table `[reward_tokens]`, else those of the panel that it starts from)
    #[arg(
        long,
        value_name = "CONFIG",
        conflicts_with = "reward_tokens",
        env = "ACEM3_REWARD_TOKENS_OF"
    )]
    pub reward_tokens_of: Option<PathBuf>,
    /// Access to the hub, for panels with a hub id.
    #[command(flatten)]
    pub hub: HubArgs,
}

impl PreferenceArgs {
    /// Returns the amount of the rubric in prompts without a panel.
    pub fn detail(&self) -> RubricDetail {
        match (self.detail, self.layout) {
            (Some(RubricDetailArg::Full), _) | (None, PromptLayoutArg::Paper) => RubricDetail::Full,
            (Some(RubricDetailArg::Names), _) | (None, PromptLayoutArg::CaseFirst) => {
                RubricDetail::Names
            }
        }
    }
}

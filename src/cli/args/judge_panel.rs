//! Which judge, and how it judges.

use clap::Args;
use clap::builder::FalseyValueParser;

use super::DeviceArgs;
use crate::checkpoints::hub::HubFlags;

/// The flags of commands that judge.
#[derive(Args, Clone, Debug)]
pub struct JudgePanelArgs {
    /// The panel that judges: its folder, the folder of a published checkpoint (LLaVA, Llama,
    /// Mistral, Qwen2) or the .gguf file of one (text alone), a .toml file that names four, or `owner/name[@revision]` on the hub; without
    /// it, the small one inside this program
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// How the hub is used.
    #[command(flatten)]
    pub hub: HubFlags,
    /// Where it computes.
    #[command(flatten)]
    pub place: DeviceArgs,
    /// How many pairs are judged at once; it moves the speed and the memory, never a verdict
    #[arg(long, value_name = "N", default_value_t = 8, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
    /// Show each pair in one order only: half the cost, no protection against position bias
    #[arg(long, env = "ACEM3_SINGLE_ORDER", value_parser = FalseyValueParser::new())]
    pub single_order: bool,
    /// Give scores without analyses: fast, and less sound
    #[arg(long, env = "ACEM3_SCORES_ONLY", value_parser = FalseyValueParser::new())]
    pub scores_only: bool,
}

//! The judge and its settings.

use clap::Args;
use clap::builder::FalseyValueParser;

use super::device::DeviceArgs;
use crate::checkpoints::hub::HubArgs;

/// Arguments that select a judge and its settings.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Judge")]
pub struct JudgePanelArgs {
    /// Judge with PANEL, three experts and a conclusion model: a panel folder; the folder of a
    /// published checkpoint (LLaVA, Llama, Mistral, Qwen2) or a .gguf file (text only), used as all
    /// four; a .toml file that names the four; or `owner/name[@revision]` on the Hugging Face Hub
    /// [default: the embedded panel]
    #[arg(long, value_name = "PANEL", env = "ACEM3_PANEL")]
    pub panel: Option<String>,
    /// The use of the hub.
    #[command(flatten)]
    pub hub: HubArgs,
    /// The device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Judge N pairs per batch; affects speed and memory, not results
    #[arg(long, value_name = "N", default_value_t = 8, env = "ACEM3_BATCH_SIZE")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,
    /// Judge each pair in one presentation order only: half the cost, no protection against
    /// position bias
    #[arg(long, env = "ACEM3_SINGLE_ORDER", value_parser = FalseyValueParser::new())]
    pub single_order: bool,
    /// Generate scores without analyses: faster, less reliable
    #[arg(long, env = "ACEM3_SCORES_ONLY", value_parser = FalseyValueParser::new())]
    pub scores_only: bool,
}

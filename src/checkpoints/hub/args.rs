//! Flags of commands that can download from the hub.

use clap::Args;
use clap::builder::FalseyValueParser;

/// Flags of commands that can download from the hub.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct HubArgs {
    /// Never contact the Hugging Face Hub; use files downloaded before (like `HF_HUB_OFFLINE=1`)
    #[arg(long, env = "ACEM3_OFFLINE", value_parser = FalseyValueParser::new())]
    pub offline: bool,
}

//! The flags of commands that may need the hub.

use clap::Args;
use clap::builder::FalseyValueParser;

/// How the hub is used.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct HubFlags {
    /// Never ask the hub: use what was downloaded before (as `HF_HUB_OFFLINE=1`)
    #[arg(long, env = "ACEM3_OFFLINE", value_parser = FalseyValueParser::new())]
    pub offline: bool,
}

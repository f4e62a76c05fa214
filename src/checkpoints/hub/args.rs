//! Flags of commands that can make network requests.

use clap::Args;
use clap::builder::FalseyValueParser;

/// Flags of commands that can make network requests.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct HubArgs {
    /// Make no network request: use files downloaded before, and no server (`HF_HUB_OFFLINE=1`
    /// forbids requests to the Hugging Face Hub only)
    #[arg(long, env = "ACEM3_OFFLINE", value_parser = FalseyValueParser::new())]
    pub offline: bool,
    /// Accept http:// URLs of other hosts, which receive keys and data unencrypted
    #[arg(long, env = "ACEM3_ALLOW_HTTP", value_parser = FalseyValueParser::new())]
    pub allow_http: bool,
}

//! Flags of commands that can make network requests.

use clap::Args;

use crate::support::terminal::switch::parse_switch;

/// Flags of commands that can make network requests.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct HubArgs {
    /// Make no network request: use files downloaded before, and no server (`HF_HUB_OFFLINE=1`
    /// forbids requests to the Hugging Face Hub only)
    #[arg(long, env = "ACEM3_OFFLINE", value_parser = parse_switch)]
    pub offline: bool,
    /// Accept http:// URLs of other hosts, which receive keys and data unencrypted
    #[arg(long, env = "ACEM3_ALLOW_HTTP", value_parser = parse_switch)]
    pub allow_http: bool,
}

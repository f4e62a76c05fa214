//! What may be typed behind `acem3 panel`.

use clap::{Args, Subcommand};

use super::OutputFormat;
use crate::checkpoints::hub::HubFlags;

/// `acem3 panel`.
#[derive(Args, Clone, Debug)]
pub struct PanelArgs {
    /// What to do with a panel.
    #[command(subcommand)]
    pub command: PanelCommand,
}

/// The commands of `acem3 panel`.
#[derive(Clone, Debug, Subcommand)]
pub enum PanelCommand {
    /// Load a panel and list its members, sizes, tokenizers, encoders and hashes
    Inspect(PanelInspectArgs),
}

/// `acem3 panel inspect`.
#[derive(Args, Clone, Debug)]
pub struct PanelInspectArgs {
    /// The panel, as for `acem3 judge --panel`; without it, the small one inside this program
    pub panel: Option<String>,
    /// How the hub is used.
    #[command(flatten)]
    pub hub: HubFlags,
    /// The form of the list on stdout
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

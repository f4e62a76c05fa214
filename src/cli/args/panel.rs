//! Arguments of `acem3 panel`.

use clap::{Args, Subcommand};

use super::shared::OutputFormat;
use crate::checkpoints::hub::HubArgs;

/// Arguments of `acem3 panel`.
#[derive(Args, Clone, Debug)]
pub struct PanelArgs {
    /// The command to run.
    #[command(subcommand)]
    pub command: PanelCommand,
}

/// The commands of `acem3 panel`.
#[derive(Clone, Debug, Subcommand)]
pub enum PanelCommand {
    /// Load a panel and list its members, sizes, tokenizers, encoders and hashes
    Inspect(PanelInspectArgs),
}

/// Arguments of `acem3 panel inspect`.
#[derive(Args, Clone, Debug)]
pub struct PanelInspectArgs {
    /// Panel, as for `acem3 judge --panel` [default: the embedded panel]
    pub panel: Option<String>,
    /// Access to the hub, for panels with a hub id.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Print the description in this format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, env = "ACEM3_FORMAT")]
    pub format: OutputFormat,
}

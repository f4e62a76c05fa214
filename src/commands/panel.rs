//! `acem3 panel`: what a panel is made of.

use candle::Device;

use super::print;
use crate::cli::{Format, PanelArgs, PanelCommand, PanelInspectArgs};
use crate::exit::Exit;
use crate::panel::{PanelFiles, inspect};

/// Runs the command.
pub(super) fn run(args: &PanelArgs) -> anyhow::Result<Exit> {
    match &args.command {
        PanelCommand::Inspect(args) => show(args),
    }
}

fn show(args: &PanelInspectArgs) -> anyhow::Result<Exit> {
    let files = PanelFiles::find(args.panel.as_deref())?;
    let found = inspect(&files, &Device::Cpu)?;
    let text = match args.format {
        Format::Text => found.text(),
        Format::Json => serde_json::to_string_pretty(&found)? + "\n",
    };
    print(&text)?;
    Ok(Exit::Done)
}

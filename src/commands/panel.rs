//! `acem3 panel`: what a panel is made of.

use std::io::{self, Write as _};

use anyhow::Context as _;
use candle::Device;

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
    io::stdout()
        .write_all(text.as_bytes())
        .context("cannot write to stdout")?;
    Ok(Exit::Done)
}

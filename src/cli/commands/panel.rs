//! `acem3 panel`: inspection of panels.

use super::output::write_stdout;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{OutputFormat, PanelArgs, PanelCommand, PanelInspectArgs};
use crate::judging::panel::inspect;
use crate::support::device::Placement;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::verbosity::Verbosity;

/// Runs the command.
pub(super) fn run(args: &PanelArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    match &args.command {
        PanelCommand::Inspect(args) => inspect_panel(args, verbosity),
    }
}

fn inspect_panel(args: &PanelInspectArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::locate(args.panel.as_deref(), &mut downloads)?;
    let inspection = inspect(&files, &Placement::cpu(), downloads)?;
    let text = match args.format {
        OutputFormat::Text => inspection.to_text(),
        OutputFormat::Json => serde_json::to_string_pretty(&inspection)? + "\n",
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}

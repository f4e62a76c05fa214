//! Loads the judge that the flags select.

use crate::checkpoints::hub::{HubDownloads, HubSource};
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::JudgePanelArgs;
use crate::judging::judge::Judge;
use crate::judging::judge::scripted::ScriptedJudge;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge};
use crate::support::process::limits::free_memory;
use crate::support::terminal::verbosity::Verbosity;

/// Loads the judge. Also returns the snapshots that it downloaded from the hub.
pub(super) fn load_judge(
    args: &JudgePanelArgs,
    verbosity: Verbosity,
) -> anyhow::Result<(Box<dyn Judge>, Vec<HubSource>)> {
    let panel_name = args.panel.as_deref();
    if let Some(script) = panel_name.and_then(|panel| panel.strip_prefix("scripted:")) {
        let judge = ScriptedJudge::parse(script, args.single_order, args.scores_only)?;
        return Ok((Box::new(judge), Vec::new()));
    }
    let placement = args.device.open()?;
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::locate(panel_name, &mut downloads)?;
    let panel = Panel::load(&files, args.scores_only, &placement, downloads)?;
    let hub = panel.hub().to_vec();
    let options = JudgeOptions { single_order: args.single_order };
    let mut judge = PanelJudge::new(panel, options);
    let free = || placement.device.is_cpu().then(free_memory).flatten().map(|bytes| bytes / 2);
    if let Some(bytes) = args.memory.or_else(free) {
        judge = judge.with_memory(bytes);
    }
    Ok((Box::new(judge), hub))
}

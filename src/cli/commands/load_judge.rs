//! Loads the judge that the flags select.

use crate::checkpoints::hub::{HubDownloads, HubSource};
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{FormArgs, JudgePanelArgs};
use crate::judging::judge::Judge;
use crate::judging::judge::scripted::{ScriptedJudge, ScriptedSettings};
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use crate::support::process::limits::free_memory;
use crate::support::terminal::verbosity::Verbosity;

/// Loads the judge. Also returns the snapshots that it downloaded from the hub.
pub(super) fn load_judge(
    args: &JudgePanelArgs,
    form: &FormArgs,
    verbosity: Verbosity,
) -> anyhow::Result<(Box<dyn Judge>, Vec<HubSource>)> {
    let (shows_reference, rubric) = (form.shows_reference(), form.to_rubric()?);
    let form = form.form.form();
    let (single_order, scores_only) = (args.single_order, args.scores_only);
    let panel_name = args.panel.as_deref();
    if let Some(script) = panel_name.and_then(|panel| panel.strip_prefix("scripted:")) {
        let settings =
            ScriptedSettings { single_order, scores_only, form, shows_reference, rubric };
        return Ok((Box::new(ScriptedJudge::parse(script, settings)?), Vec::new()));
    }
    let placement = args.device.open()?;
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::locate(panel_name, &mut downloads)?;
    let panel_options = PanelOptions { scores_only, form, shows_reference, rubric };
    let panel = Panel::load(&files, panel_options, &placement, downloads)?;
    let hub = panel.hub().to_vec();
    let mut judge = PanelJudge::new(panel, JudgeOptions { single_order });
    let free = || placement.device.is_cpu().then(free_memory).flatten().map(|bytes| bytes / 2);
    if let Some(bytes) = args.memory.or_else(free) {
        judge = judge.with_memory(bytes);
    }
    Ok((Box::new(judge), hub))
}

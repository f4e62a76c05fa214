//! Loads the judge of a command line.

use crate::checkpoints::hub::{Downloads, HubStamp};
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::JudgePanelArgs;
use crate::judging::judge::Judge;
use crate::judging::judge::scripted::ScriptedJudge;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge};
use crate::support::terminal::verbosity::Verbosity;

/// Returns the judge, and the files that were downloaded from the hub for it.
pub(super) fn load_judge(
    args: &JudgePanelArgs,
    verbosity: Verbosity,
) -> anyhow::Result<(Box<dyn Judge>, Vec<HubStamp>)> {
    let panel_name = args.panel.as_deref();
    if let Some(script) = panel_name.and_then(|panel| panel.strip_prefix("scripted:")) {
        let judge = ScriptedJudge::parse(script, args.single_order, args.scores_only)?;
        return Ok((Box::new(judge), Vec::new()));
    }
    let place = args.device.open()?;
    let mut downloads = Downloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::locate(panel_name, &mut downloads)?;
    let panel = Panel::load(&files, args.scores_only, &place, downloads)?;
    let hub = panel.hub().to_vec();
    let options = JudgeOptions {
        single_order: args.single_order,
    };
    Ok((Box::new(PanelJudge::new(panel, options)), hub))
}

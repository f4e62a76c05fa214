//! The judge that a command line asks for.

use crate::checkpoints::hub::{Downloads, HubStamp};
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::JudgePanelArgs;
use crate::judging::judge::Judge;
use crate::judging::judge::scripted::ScriptedJudge;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge};
use crate::support::terminal::verbosity::Verbosity;

/// The judge, and what was taken from the hub for it.
pub(super) fn load_judge(
    seat: &JudgePanelArgs,
    verbosity: Verbosity,
) -> anyhow::Result<(Box<dyn Judge>, Vec<HubStamp>)> {
    let named = seat.panel.as_deref();
    if let Some(script) = named.and_then(|panel| panel.strip_prefix("scripted:")) {
        let judge = ScriptedJudge::parse(script, seat.single_order, seat.scores_only)?;
        return Ok((Box::new(judge), Vec::new()));
    }
    let place = seat.place.open()?;
    let mut downloads = Downloads::new(seat.hub, verbosity.quiet);
    let files = PanelFiles::locate(named, &mut downloads)?;
    let panel = Panel::load(&files, seat.scores_only, &place, downloads)?;
    let hub = panel.hub().to_vec();
    let options = JudgeOptions {
        single_order: seat.single_order,
    };
    Ok((Box::new(PanelJudge::new(panel, options)), hub))
}

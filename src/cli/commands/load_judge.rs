//! Loads the judge that the flags select.

use super::ignored_flags::note_without_effect;
use super::load_served;
use crate::checkpoints::hub::{HubDownloads, HubSource};
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::members_file::MembersFile;
use crate::cli::args::{FormArgs, JudgePanelArgs};
use crate::judging::judge::Judge;
use crate::judging::judge::scripted::{ScriptedJudge, ScriptedSettings};
use crate::judging::knowledge::JudgeKnowledge;
use crate::judging::panel::{Panel, PanelJudge, PanelOptions};
use crate::support::network::service_url::looks_like_url;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;

/// Loads the judge. Also returns the snapshots that it downloaded from the hub.
pub(super) fn load_judge(
    args: &JudgePanelArgs,
    form: &FormArgs,
    verbosity: Verbosity,
) -> anyhow::Result<(Box<dyn Judge>, Vec<HubSource>)> {
    let knowledge = open_knowledge(args)?;
    let (shows_reference, rubric) = (form.shows_reference(), form.to_rubric()?);
    let form = form.form.form();
    let run = args.judge_options()?;
    let (single_order, scores_only) = (args.single_order, args.scores_only);
    let panel_name = args.panel.as_deref();
    if let Some(script) = panel_name.and_then(|panel| panel.strip_prefix("scripted:")) {
        reject_samples(args, "a scripted judge writes one text")?;
        reject_served_flags(args)?;
        let settings = ScriptedSettings {
            single_order,
            scores_only,
            form,
            shows_reference,
            rubric,
            knowledge,
        };
        return Ok((Box::new(ScriptedJudge::parse(script, settings)?), Vec::new()));
    }
    let panel_options = PanelOptions { scores_only, form, shows_reference, rubric, knowledge };
    if let Some(url) = panel_name.filter(|panel| looks_like_url(panel)) {
        reject_samples(args, SERVED_TEXTS)?;
        let judge = load_served::connect_model(url, args, panel_options)?;
        return Ok((Box::new(judge), Vec::new()));
    }
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::locate(panel_name, &mut downloads)?;
    let mut members = None;
    if let PanelFiles::Members(path) = &files {
        let file = MembersFile::read(path)?;
        if file.serves_any(&panel_options.to_rubric()?.judging_members(panel_options.form)) {
            reject_samples(args, SERVED_TEXTS)?;
            let (judge, hub) =
                load_served::connect_members(path, file, args, &panel_options, &downloads)?;
            return Ok((Box::new(judge), hub));
        }
        members = file.has_served_members().then_some((file, path));
    }
    reject_served_flags(args)?;
    let (mut copies, mut hub) = (Vec::new(), Vec::new());
    for placement in args.device.open_all()? {
        let (options, downloads) = (panel_options.clone(), downloads.clone());
        let panel = match &members {
            // Its served members do not judge in this form.
            Some((file, path)) => {
                Panel::load_checkpoints(file, path, options, &placement, downloads)?
            }
            None => Panel::load(&files, options, &placement, downloads)?,
        };
        hub = panel.hub().to_vec();
        if copies.is_empty() && !panel.sees_images() && !verbosity.quiet {
            print_lines(&format!(
                "note: {} does not see images and judges the texts of the cases alone",
                panel.name()
            ));
        }
        let panel = panel.with_memory(args.memory);
        copies.push(panel);
    }
    let judge = PanelJudge::on_devices(copies, run, args.batch_size as usize)?;
    Ok((Box::new(judge), hub))
}

/// Why a served judge takes no samples.
const SERVED_TEXTS: &str = "a server writes one text per request";

/// Returns an error if samples are requested of a judge that has none.
fn reject_samples(args: &JudgePanelArgs, reason: &str) -> anyhow::Result<()> {
    if args.samples.is_set() {
        anyhow::bail!(
            "--samples: {reason}, and samples share what was computed before they differ\n\
             hint: omit --samples, or judge with a panel on this machine"
        );
    }
    Ok(())
}

/// Opens the index in which the judge looks up what it asks, if the flags name one.
fn open_knowledge(args: &JudgePanelArgs) -> anyhow::Result<Option<JudgeKnowledge>> {
    if args.scores_only && args.knowledge.knowledge.is_some() {
        anyhow::bail!(
            "--knowledge: with --scores-only there is no analysis in which the judge could ask\n\
             hint: omit one of the two flags"
        );
    }
    args.knowledge.open()
}

/// Returns an error if a flag of served judges has no effect.
fn reject_served_flags(args: &JudgePanelArgs) -> anyhow::Result<()> {
    let flags = [
        ("--model", args.served.model.is_some()),
        ("--engine", args.served.engine.is_some()),
        ("--text-only", args.served.text_only),
        ("--label-mass", args.served.label_mass),
        ("--max-cost", args.served.requests.max_cost.is_some()),
    ];
    if let Some((flag, _)) = flags.into_iter().find(|(_, is_set)| *is_set) {
        let texts = match flag {
            "--text-only" => {
                "; a checkpoint judges texts alone with `text_only = true` in a panel file"
            }
            _ => "",
        };
        anyhow::bail!(
            "{flag}: no member of the panel is served\n\
             hint: omit {flag}, or pass --panel with the URL of a server{texts}"
        );
    }
    note_without_effect(
        &args.served.set_flags_without_effect(),
        "no member of the panel is served",
    );
    Ok(())
}

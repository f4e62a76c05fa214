//! `acem3 panel`: inspection of panels and of their prompts, and export for serving.

use acem3_experts::prompt::JudgeInput;
use anyhow::{Context as _, bail};

use super::output::{NO_CASES, write_stdout};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::peft::{ExportedPanel, PeftExport};
use crate::cli::args::{
    OutputFormat, PanelArgs, PanelCommand, PanelExportArgs, PanelInspectArgs, PanelPromptsArgs,
};
use crate::data::cases;
use crate::data::cases::Case;
use crate::judging::panel::{PanelOptions, PromptedPanel, inspect, member_prompts};
use crate::support::device::Placement;
use crate::support::network::service_url::{ServiceUrl, UrlRules, looks_like_url};
use crate::support::terminal::exit::Exit;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::escape_control_chars;

/// Runs the command.
pub(super) fn run(args: &PanelArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    match &args.command {
        PanelCommand::Inspect(args) => inspect_panel(args, verbosity),
        PanelCommand::Export(args) => export_panel(args, verbosity),
        PanelCommand::Prompts(args) => print_prompts(args, verbosity),
    }
}

fn inspect_panel(args: &PanelInspectArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::locate(args.panel.as_deref(), &mut downloads)?;
    let inspection = inspect(&files, &Placement::cpu(), downloads)?;
    let text = match args.format {
        OutputFormat::Text => escape_control_chars_in_lines(&inspection.to_text()),
        OutputFormat::Json => serde_json::to_string_pretty(&inspection)? + "\n",
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}

/// Writes a panel for serving, and prints how to serve it.
fn export_panel(args: &PanelExportArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let rules = UrlRules { key_variable: "api_key_env", allow_http: args.hub.allow_http };
    let endpoint = ServiceUrl::parse(&args.endpoint, rules).context("--endpoint")?;
    let files = PanelFiles::resolve("PANEL", &args.panel, &mut downloads)?;
    let export = PeftExport { panel: &args.panel, out: &args.out, endpoint: &endpoint };
    let ExportedPanel { serve, judge } = export.write(&files, downloads)?;
    write_stdout(&format!("{serve}\n{judge}\n"))?;
    Ok(Exit::Done)
}

/// Prints the prompts about the first judged responses of a case.
fn print_prompts(args: &PanelPromptsArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let selection = args.form.to_selection(None);
    args.form.to_rubric()?;
    let case = find_case(args)?;
    let problem = || format!("{}: case {}", args.source.path.display(), case.id);
    let selected = selection.select(&case).map_err(anyhow::Error::msg).with_context(problem)?;
    selection.check_reference(&case).map_err(anyhow::Error::msg).with_context(problem)?;
    let responses = selected.first().into_iter().flatten();
    let responses: Vec<_> = responses.filter_map(|i| case.responses.get(*i)).collect();
    let input = JudgeInput {
        has_image: case.image.is_some(),
        question: &case.question,
        reference: case.reference.as_deref().filter(|_| selection.shows_reference),
        responses: responses.iter().map(|response| response.text.as_str()).collect(),
    };
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    // The prompts of a served model do not depend on its server.
    let is_served = args.panel.as_deref().is_some_and(looks_like_url);
    let files = PanelFiles::locate(args.panel.as_deref().filter(|_| !is_served), &mut downloads)?;
    let panel = if is_served { PromptedPanel::Model } else { PromptedPanel::Files(&files) };
    let options = PanelOptions {
        scores_only: false,
        form: selection.form,
        shows_reference: selection.shows_reference,
        rubric: args.form.to_rubric()?,
        knowledge: None,
    };
    let prompts = member_prompts(panel, &options, &input, downloads)?;
    let text = match args.format {
        OutputFormat::Json => serde_json::to_string_pretty(&prompts)? + "\n",
        OutputFormat::Text => {
            let models: Vec<&str> = responses.iter().map(|r| r.model.as_str()).collect();
            let mut text = format!("case {}, responses of {}\n", case.id, join_names(&models));
            for prompt in &prompts {
                text.extend([
                    "\n===== ",
                    prompt.member,
                    " reads =====\n",
                    prompt.prompt.trim_end(),
                ]);
                text.extend(["\n\n===== ", prompt.member, " writes =====\n"]);
                text.extend([prompt.format.trim_end(), "\n"]);
            }
            escape_control_chars_in_lines(&text)
        }
    };
    write_stdout(&text)?;
    Ok(Exit::Done)
}

/// Returns the case with the id that the user names, or the first one that can be judged.
fn find_case(args: &PanelPromptsArgs) -> anyhow::Result<Case> {
    let path = &args.source.path;
    let source = cases::open(path, &args.form.source_options(&args.source))?;
    let mut problem = None;
    for case in source {
        match case {
            Ok(case) if args.case.as_ref().is_none_or(|id| *id == case.id) => return Ok(case),
            Err(error) if args.case.is_none() || error.id.as_deref() == args.case.as_deref() => {
                problem.get_or_insert(error);
            }
            Ok(_) | Err(_) => {}
        }
    }
    match (problem, &args.case) {
        (Some(problem), _) => Err(problem.into()),
        (None, Some(id)) => bail!(
            "--case {id}: {} has no case with this id\nhint: omit --case to see the first case",
            path.display()
        ),
        (None, None) => bail!("{}: {NO_CASES}", path.display()),
    }
}

/// Joins names: `a`, `a and b`, `a, b and c`.
fn join_names(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// Escapes control characters, except line breaks.
fn escape_control_chars_in_lines(text: &str) -> String {
    let lines = text.lines().map(escape_control_chars);
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

//! `acem3 data preferences`: preference pairs for DPO.

use acem3_experts::prompt::Rubric;

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{PreferenceArgs, read_rubric};
use crate::cli::commands::output::write_stdout;
use crate::judging::panel::PromptedPanel;
use crate::support::network::service_url::looks_like_url;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;
use crate::training::RewardTokens;
use crate::training::preferences::{
    MistakeFiles, PreferenceFolderConfig, PromptStyle, write_evaluation_preferences,
    write_mistake_preferences, write_phantom_preferences,
};

/// Runs the command.
pub(super) fn run(args: &PreferenceArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let prompts = prompt_style(args, verbosity)?;
    let reward_tokens = match &args.reward_tokens_of {
        Some(config) => Some(RewardTokens::read(config)?),
        None if args.reward_tokens => Some(prompts.reward_tokens()?),
        None => None,
    };
    let config = PreferenceFolderConfig {
        out: args.out.clone(),
        cases: args.count,
        seed: args.seed,
        negatives: args.negatives.clone(),
        writes_every_negative: args.every,
        prompts,
        reward_tokens,
    };
    let interrupt = Interrupt::listen()?;
    let (written, notes) = match (&args.evaluations, &args.mistakes, &args.corrections) {
        (_, Some(records), Some(corrections)) => {
            let files = MistakeFiles {
                records: records.clone(),
                corrections: corrections.clone(),
                images: args.images.clone(),
            };
            let counts = write_mistake_preferences(&files, &config, &interrupt)?;
            let verdicts = format_count(counts.verdicts, "verdict");
            let mut notes = vec![format!("{verdicts} compared with labels")];
            notes.extend(counts.skipped.lines());
            (counts.written, notes)
        }
        (Some(file), ..) => {
            let written = write_evaluation_preferences(file, &config, &interrupt)?;
            let notes = written.obstacles.lines();
            (written, notes)
        }
        _ => (write_phantom_preferences(&config, &interrupt)?, Vec::new()),
    };
    let is_empty = written.pairs == 0;
    if let Some(edited) = &written.edited {
        print_lines(&edited.note());
    }
    if !verbosity.quiet {
        let (pairs, out) = (format_count(written.pairs, "pair"), args.out.display());
        write_stdout(&format!("{pairs} in {out}\n"))?;
        if written.skipped > 0 {
            let skipped = format_count(written.skipped, "evaluation");
            print_lines(&format!("{skipped} skipped: no method of --negatives applies"));
        }
        let tokens =
            config.reward_tokens.iter().map(|t| format!("reward tokens: {}", t.describe()));
        for note in tokens.chain(notes) {
            print_lines(&note);
        }
    }
    if is_empty {
        anyhow::bail!(
            "{}: no pair was written\nhint: choose other methods with --negatives, or other evaluations",
            args.out.display()
        );
    }
    Ok(Exit::Done)
}

/// Returns the prompts that the user selects.
fn prompt_style(args: &PreferenceArgs, verbosity: Verbosity) -> anyhow::Result<PromptStyle> {
    let rubric = match &args.rubric {
        Some(name) => read_rubric(name)?.as_ref().clone(),
        None => Rubric::built_in()?,
    };
    let Some(panel) = &args.panel else {
        return Ok(PromptStyle::of_layout(args.layout.into(), args.detail(), rubric));
    };
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    if looks_like_url(panel) {
        return PromptStyle::of_panel(PromptedPanel::Model, rubric, downloads);
    }
    let files = PanelFiles::locate(Some(panel), &mut downloads)?;
    PromptStyle::of_panel(PromptedPanel::Files(&files), rubric, downloads)
}

//! `acem3 train introspect`: rounds of training, judging and data improvement.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{IntrospectArgs, OutputFormat};
use crate::cli::commands::output::write_stdout;
use crate::judging::panel::PanelJudge;
use crate::judging::run::journal::RECORDS;
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::tables::TableStyle;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::introspection::{Adviser, Endpoint, Introspection};
use crate::training::{TrainConfig, TrainingProgress};

/// The environment variable with the API key of the server.
const API_KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Runs the command.
pub(super) fn run(args: &IntrospectArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let (config, start) = TrainConfig::load(&args.config, downloads)?;
    let placement = args.device.open()?;
    let mut adviser = open_adviser(args, &placement, verbosity)?;
    let interrupt = Interrupt::listen()?;
    let introspection = Introspection {
        config: &config,
        initial_model: start.as_ref(),
        cases: &args.cases.to_spec(2),
        held_out: args.held_out.as_deref(),
        data: args.data.clone(),
        out: &args.out,
        rounds: args.rounds,
        max_attempts: args.attempts,
        batch_size: args.batch_size as usize,
        placement,
        verbosity,
        progress: &TrainingProgress::new(verbosity.quiet, interrupt.clone()),
        interrupt: &interrupt,
    };
    let Some(rounds) = introspection.run(&mut adviser)? else {
        print_lines("interrupted; run the same command to resume");
        return Ok(Exit::Interrupted);
    };
    let json = serde_json::to_string_pretty(&rounds)? + "\n";
    for (name, text) in [
        ("rounds.json", json.clone()),
        ("rounds.md", rounds.text(TableStyle::Markdown)),
        ("rounds.svg", rounds.svg()),
    ] {
        atomic_file::write_atomic(&args.out.join(name), text.as_bytes())?;
    }
    write_stdout(&match args.format {
        OutputFormat::Text => rounds.text(TableStyle::terminal()),
        OutputFormat::Json => json,
    })?;
    Ok(Exit::Done)
}

/// Opens the source of better evaluations.
fn open_adviser(
    args: &IntrospectArgs,
    placement: &Placement,
    verbosity: Verbosity,
) -> anyhow::Result<Adviser> {
    let source = args.adviser.as_str();
    if source.starts_with("http://") || source.starts_with("https://") {
        let Some(model) = &args.model else {
            bail!(
                "--adviser {source}: no model\n\
                 hint: pass the name of a model on the server with --model"
            );
        };
        let key = std::env::var(API_KEY_VARIABLE).ok().filter(|key| !key.is_empty());
        if !verbosity.quiet {
            print_lines(&format!(
                "images, questions and answers of misjudged pairs are sent to {source}"
            ));
        }
        let endpoint = Endpoint::new(source, model, key).context("--adviser")?;
        return Ok(Adviser::Endpoint(Box::new(endpoint)));
    }
    let path = Path::new(source);
    let is_jsonl = path.extension().is_some_and(|extension| extension == "jsonl");
    if is_jsonl || path.join(RECORDS).exists() {
        let (adviser, run) = Adviser::from_records(path).context("--adviser")?;
        run.notices().iter().for_each(|notice| print_lines(notice));
        return Ok(adviser);
    }
    let mut downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::resolve("--adviser", source, &mut downloads)?;
    let judge = PanelJudge::load(&files, placement, downloads)?;
    Ok(Adviser::Judge(Box::new(judge)))
}

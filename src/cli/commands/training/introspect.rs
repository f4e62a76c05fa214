//! `acem3 train introspect`: rounds of training, judging and data improvement.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{IntrospectArgs, OutputFormat};
use crate::cli::commands::output::print;
use crate::judging::panel::PanelJudge;
use crate::judging::run::journal::RECORDS;
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::tables::TableStyle;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::say;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::introspection::{Adviser, Endpoint, Introspection};
use crate::training::{TrainConfig, TrainingProgress};

/// The environment variable with the API key of the server.
const API_KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Runs the command.
pub(super) fn run(args: &IntrospectArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let downloads = Downloads::new(args.hub, verbosity.quiet);
    let (config, start) = TrainConfig::load(&args.config, downloads)?;
    let place = args.device.open()?;
    let mut adviser = adviser(args, &place, verbosity)?;
    let interrupt = Interrupt::listen()?;
    let introspection = Introspection {
        config: &config,
        start: start.as_ref(),
        cases: &args.cases.spec(2),
        held_out: args.held_out.as_deref(),
        data: args.data.clone(),
        out: &args.out,
        rounds: args.rounds,
        attempts: args.attempts,
        batch_size: args.batch_size as usize,
        place,
        verbosity,
        live: &TrainingProgress::new(verbosity.quiet, interrupt.clone()),
        interrupt: &interrupt,
    };
    let Some(rounds) = introspection.run(&mut adviser)? else {
        say("interrupted; run the same command to resume");
        return Ok(Exit::Interrupted);
    };
    let json = serde_json::to_string_pretty(&rounds)? + "\n";
    for (name, text) in [
        ("rounds.json", json.clone()),
        ("rounds.md", rounds.text(TableStyle::Markdown)),
        ("rounds.svg", rounds.svg()),
    ] {
        atomic_file::write(&args.out.join(name), text.as_bytes())?;
    }
    print(&match args.format {
        OutputFormat::Text => rounds.text(TableStyle::terminal()),
        OutputFormat::Json => json,
    })?;
    Ok(Exit::Done)
}

/// Opens the source of better evaluations.
fn adviser(
    args: &IntrospectArgs,
    place: &Placement,
    verbosity: Verbosity,
) -> anyhow::Result<Adviser> {
    let source = args.adviser.as_str();
    if source.starts_with("http://") || source.starts_with("https://") {
        let Some(model) = &args.model else {
            bail!(
                "--adviser {source}: no model\nhint: pass the name of a model on the server with --model"
            );
        };
        let key = std::env::var(API_KEY_VARIABLE)
            .ok()
            .filter(|key| !key.is_empty());
        if !verbosity.quiet {
            say(&format!(
                "images, questions and answers of misjudged pairs are sent to {source}"
            ));
        }
        let endpoint = Endpoint::new(source, model, key).context("--adviser")?;
        return Ok(Adviser::Endpoint(Box::new(endpoint)));
    }
    let path = Path::new(source);
    let is_jsonl = path
        .extension()
        .is_some_and(|extension| extension == "jsonl");
    if is_jsonl || path.join(RECORDS).exists() {
        return Adviser::recorded(path).context("--adviser");
    }
    let mut downloads = Downloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::named("--adviser", source, &mut downloads)?;
    let judge = PanelJudge::open(&files, place, downloads)?;
    Ok(Adviser::Judge(Box::new(judge)))
}

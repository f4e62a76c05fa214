//! `acem3 train introspect`: rounds of judging, asking, mending and training.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::print;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{IntrospectArgs, OutputFormat};
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

/// The variable that holds an endpoint's key.
const KEY: &str = "OPENAI_API_KEY";

/// Runs the command.
pub(super) fn run(args: &IntrospectArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let downloads = Downloads::new(args.hub, verbosity.quiet);
    let (config, start) = TrainConfig::load(&args.config, downloads)?;
    let place = args.place.open()?;
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
        say("interrupted; the same command goes on where it stopped");
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

/// Whom `--suggest` names.
fn adviser(
    args: &IntrospectArgs,
    place: &Placement,
    verbosity: Verbosity,
) -> anyhow::Result<Adviser> {
    let named = args.suggest.as_str();
    if named.starts_with("http://") || named.starts_with("https://") {
        let Some(model) = &args.model else {
            bail!("--suggest {named}: it has many models\nhint: --model names the one to ask");
        };
        let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
        if !verbosity.quiet {
            say(&format!(
                "images, questions and answers of pairs that are judged wrong are sent to {named}"
            ));
        }
        let endpoint = Endpoint::new(named, model, key).context("--suggest")?;
        return Ok(Adviser::Endpoint(Box::new(endpoint)));
    }
    let path = Path::new(named);
    let records = path.extension().is_some_and(|ending| ending == "jsonl");
    if records || path.join(RECORDS).exists() {
        return Adviser::recorded(path).context("--suggest");
    }
    let mut downloads = Downloads::new(args.hub, verbosity.quiet);
    let files = PanelFiles::named("--suggest", named, &mut downloads)?;
    let judge = PanelJudge::open(&files, place, downloads)?;
    Ok(Adviser::Judge(Box::new(judge)))
}

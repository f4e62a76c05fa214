//! `acem3 train introspect`: rounds of training, judging and data improvement.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::result_files::{ResultFiles, ResultFormat};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{IntrospectArgs, OutputFormat};
use crate::cli::commands::output::write_stdout;
use crate::data::images::outside_images::OutsideImages;
use crate::judging::panel::PanelJudge;
use crate::judging::run::journal::RECORDS;
use crate::support::device::Placement;
use crate::support::network::access_token::{API_KEY_VARIABLE, AccessToken};
use crate::support::network::service_url::{ServiceUrl, UrlRules, looks_like_url};
use crate::support::tables::TableStyle;
use crate::support::tables::chart::SVG_CHART;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::training::introspection::{Adviser, Endpoint, Introspection, Rounds};
use crate::training::{TrainConfig, TrainingProgress};

/// Runs the command.
pub(super) fn run(args: &IntrospectArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let downloads = HubDownloads::new(args.hub, verbosity.quiet);
    let (config, start) = TrainConfig::load(&args.config, downloads)?;
    let placement = args.device.open()?;
    let mut adviser = open_adviser(args, &placement, verbosity)?;
    let formats = vec![
        ResultFormat { extension: "json", form: Rounds::JSON_FORM },
        ResultFormat { extension: "md", form: Rounds::MARKDOWN_FORM },
        ResultFormat { extension: "svg", form: SVG_CHART },
    ];
    let files = ResultFiles::check(&args.out, "rounds", formats)?;
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
        outside_images: match &adviser {
            Adviser::Endpoint(_) if !args.allow_outside => OutsideImages::rejected(),
            _ => OutsideImages::accepted(),
        },
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
    files.write("json", &json)?;
    files.write("md", &rounds.text(TableStyle::Markdown))?;
    files.write("svg", &rounds.svg())?;
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
    if looks_like_url(source) {
        let endpoint = open_endpoint(args, verbosity).context("--adviser")?;
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

/// Opens the endpoint at the URL of `--adviser`. Errors do not contain the URL, which may contain a
/// key.
fn open_endpoint(args: &IntrospectArgs, verbosity: Verbosity) -> anyhow::Result<Endpoint> {
    let allow_http = args.hub.allow_http;
    let url =
        ServiceUrl::parse(&args.adviser, UrlRules { key_variable: API_KEY_VARIABLE, allow_http })?;
    if args.hub.offline {
        bail!(
            "{}: --offline forbids requests\n\
             hint: remove --offline, or pass a panel or the records of a run",
            url.as_str()
        );
    }
    let Some(model) = &args.model else {
        bail!(
            "{}: no model\nhint: pass the name of a model on the server with --model",
            url.as_str()
        );
    };
    let key = std::env::var(API_KEY_VARIABLE).ok().and_then(|key| AccessToken::new(&key));
    if !verbosity.quiet {
        print_lines(&format!(
            "images, questions and answers of misjudged pairs are sent to {}",
            url.as_str()
        ));
    }
    Endpoint::new(&url, model, key)
}

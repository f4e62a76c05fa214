//! `acem3 data answers`: asks models the questions of cases.

use std::path::{Path, PathBuf};

use acem3_vision::ImageLimits;
use anyhow::{Context as _, Result, bail};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::cli::args::{AnswererArgs, AnswersArgs, OutputFormat};
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::output::{NO_CASES, write_stdout};
use crate::data::cases::{self, CaseSource};
use crate::data::images::ImageReader;
use crate::data::images::outside_images::OutsideImages;
use crate::judging::judge::text_writer::{TextSampling, TextWriter};
use crate::judging::panel::{LocalWriter, Panel, PanelOptions};
use crate::judging::served::endpoint::{EndpointSettings, ServedModel};
use crate::judging::served::{ServedWriter, ServedWriterSettings};
use crate::support::files::file_identity::FileIdentity;
use crate::support::files::folder::create_folder;
use crate::support::files::regular_file;
use crate::support::network::service_url::looks_like_url;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::{Progress, print_lines};
use crate::support::terminal::verbosity::Verbosity;
use crate::training::construction::answers::{
    AnswerEstimate, AnswerJournal, AnswerManifest, AnswerRun, AnswerRunConfig, AnswerSettings,
    AnswerSummary, QuestionPrompt, estimate_answers,
};

/// The model that answers, and its name.
struct Answerer {
    writer: Box<dyn TextWriter>,
    name: String,
}

/// Asks the questions of a source and writes the answers.
pub(super) fn write_answers(args: &AnswersArgs, verbosity: Verbosity) -> Result<Exit> {
    let prompt = read_prompt(args.prompt.as_deref())?;
    let mut source = cases::open_questions(&args.questions.path, &args.questions.to_options())?;
    check_out(args, &source)?;
    let notes = source.take_field_notes();
    let ignored = ignored_flags(&args.questions.to_source(), source.kind);
    let notes: Vec<String> = ignored.into_iter().chain(notes).collect();
    let Answerer { mut writer, name } = load_answerer(args, verbosity)?;
    let shows_images = !args.text_only;
    if shows_images && source.has_image_ahead() && !writer.sees_images() {
        bail!(
            "{}: the cases have images, and {} does not see images\n\
             hint: ask a multimodal model, or pass --text-only to ask the questions alone",
            args.questions.path.display(),
            name
        );
    }
    let model_id = args.model_id.clone().unwrap_or_else(|| name.clone());
    let model_id = model_id.trim().to_owned();
    if model_id.is_empty() {
        bail!("--as: the name is empty\nhint: pass the name of the model in tables and records");
    }
    let sampling = args.to_sampling();
    let settings =
        AnswerSettings::new(&model_id, writer.settings(), &sampling, &prompt, shows_images);
    let config = AnswerRunConfig { model_id, prompt, settings, shows_images, limit: args.limit };
    if args.dry_run {
        return dry_run(args, source, writer.as_mut(), &config);
    }
    if source.total == Some(0) {
        bail!("{}: {NO_CASES}", args.questions.path.display());
    }
    create_folder(&out_folder(&args.out))?;
    AnswerManifest::read(&args.out)?;
    let mut journal = AnswerJournal::open(&args.out, &config.settings)?;
    let questions = args.questions.path.display().to_string();
    let manifest = AnswerManifest::new(questions, writer.describe(), config.settings.clone());
    manifest.write(&args.out)?;
    writer.add_earlier_usage(journal.scan().usage);
    let total = source.total.map(|n| args.limit.map_or(n, |limit| n.min(limit)));
    let progress = Progress::with_items(args.progress, verbosity, total, "questions");
    let mut progress = progress.with_results("answer", "unanswered");
    progress.note(&writer.describe());
    notes.iter().chain(&journal.describe_repair()).for_each(|note| progress.note(note));
    let interrupt =
        Interrupt::listen_with_note("stopping; the next run asks the questions in progress again")?;
    let outside = OutsideImages::counted();
    let images = image_reader(args).with_outside_images(outside.clone());
    let mut run = AnswerRun::new(writer.as_mut(), &mut journal, images, &mut progress, config);
    let outcome = run.run(&mut source, &interrupt);
    let mut summary = run.summary().clone();
    progress.finish();
    outside.note().iter().for_each(|note| progress.note(note));
    writer.describe_other_models().iter().for_each(|note| progress.note(note));
    let usage = writer.usage();
    summary.set_usage(usage, args.answerer.requests.price.map(|prices| usage.cost(prices)));
    if !outcome? {
        progress.note(&format!(
            "interrupted after {} of {}; run the same command to resume",
            summary.questions,
            total.map_or("all questions".to_owned(), |n| format!("{n} questions"))
        ));
        return Ok(Exit::Interrupted);
    }
    if journal.unused_count() > 0 {
        progress.note(&format!(
            "{} earlier answers belong to no question, and stay in {}",
            journal.unused_count(),
            args.out.with_extension("earlier").display()
        ));
    }
    let Some(percent) = summary.unanswered_percent() else {
        bail!("{}: {NO_CASES}", args.questions.path.display());
    };
    print_summary(args, &summary)?;
    Ok(exit_status(args, percent, &progress))
}

/// Reads the template of `--prompt`.
fn read_prompt(path: Option<&Path>) -> Result<QuestionPrompt> {
    let Some(path) = path else {
        return Ok(QuestionPrompt::default());
    };
    let text = regular_file::read_to_string(path)
        .with_context(|| format!("--prompt {}: cannot be read", path.display()))?;
    QuestionPrompt::parse(&text).with_context(|| format!("--prompt {}", path.display()))
}

/// Checks the output file: its name, and that it is not an input.
fn check_out(args: &AnswersArgs, source: &CaseSource) -> Result<()> {
    let out = args.out.display();
    if args.out.is_dir() {
        bail!("--out {out}: is a folder, expected a file\nhint: add the name of a file, a.jsonl");
    }
    if args.out.extension().is_none_or(|extension| extension != "jsonl") {
        bail!(
            "--out {out}: expected a name that ends in .jsonl\n\
             hint: `acem3 judge --answers FOLDER` reads files with this ending"
        );
    }
    if args.out.exists() {
        regular_file::check_regular(&args.out).with_context(|| format!("--out {out}"))?;
    }
    let own = FileIdentity::of(&args.out);
    let mut inputs = source.files.iter().chain(&args.prompt);
    let is_own = |input: &&PathBuf| own.is_some() && FileIdentity::of(input) == own;
    if let Some(input) = inputs.find(is_own) {
        bail!(
            "--out {out}: is an input of this command ({})\nhint: choose another file",
            input.display()
        );
    }
    Ok(())
}

/// Returns the folder of the output file.
fn out_folder(out: &Path) -> PathBuf {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn image_reader(args: &AnswersArgs) -> ImageReader {
    let root = cases::base_folder(&args.questions.path);
    ImageReader::new(root, ImageLimits::default()).with_dicom_view(args.questions.dicom.to_view())
}

/// Loads the checkpoint, or connects to the server.
fn load_answerer(args: &AnswersArgs, verbosity: Verbosity) -> Result<Answerer> {
    let AnswererArgs { panel, .. } = &args.answerer;
    let sampling = args.to_sampling();
    if looks_like_url(panel) {
        let writer = connect(panel, args, sampling)?;
        let name = writer.server().model.clone();
        return Ok(Answerer { writer: Box::new(writer), name });
    }
    reject_served_flags(&args.answerer)?;
    if !sampling.is_greedy() || sampling.top_k.is_some() || sampling.seed.is_some() {
        bail!(
            "--temperature, --top-k and --seed: a checkpoint takes the most probable token\n\
             hint: omit them, or serve the model and pass --panel URL"
        );
    }
    let mut downloads = HubDownloads::new(args.answerer.hub, verbosity.quiet);
    let files = PanelFiles::resolve("--panel", panel, &mut downloads)?;
    if !matches!(files, PanelFiles::Checkpoint(_)) {
        bail!(
            "--panel {panel}: a panel of four members, expected one model\n\
             hint: pass the folder of a published checkpoint, or the URL of a server"
        );
    }
    let placement = args.answerer.device.open()?;
    let loaded = Panel::load(&files, PanelOptions::default(), &placement, downloads)?;
    let loaded = loaded.with_memory(args.answerer.memory);
    let name = loaded.name().to_owned();
    let writer = LocalWriter::new(loaded, sampling, args.answerer.batch_size as usize)?;
    Ok(Answerer { writer: Box::new(writer), name })
}

/// Connects to a server.
fn connect(url: &str, args: &AnswersArgs, sampling: TextSampling) -> Result<ServedWriter> {
    let answerer = &args.answerer;
    let Some(model) = &answerer.model else {
        bail!(
            "--panel: a server needs the name of a model\nhint: pass --model with a model of the server"
        );
    };
    if answerer.hub.offline {
        bail!("--offline: a server needs requests\nhint: omit --offline, or pass a checkpoint");
    }
    let model = ServedModel::new(EndpointSettings {
        url,
        model,
        engine: answerer.engine,
        key_variable: answerer.api_key_env.as_deref(),
        allowed_hosts: &answerer.allow_host,
        allow_http: answerer.hub.allow_http,
        adapters: &[],
    })?;
    if !model.url.is_local() {
        let host = model.url.host();
        print_lines(&format!("images and questions are sent to {host} (--allow-host)"));
    }
    ServedWriter::connect(ServedWriterSettings {
        model,
        sampling,
        limits: answerer.requests.limits(),
        budget: answerer.requests.budget(),
        text_only: args.text_only,
    })
}

/// Returns an error if a flag of served models has no effect.
fn reject_served_flags(args: &AnswererArgs) -> Result<()> {
    let flags = [
        ("--model", args.model.is_some()),
        ("--engine", args.engine.is_some()),
        ("--api-key-env", args.api_key_env.is_some()),
        ("--price", args.requests.price.is_some()),
        ("--max-cost", args.requests.max_cost.is_some()),
    ];
    if let Some((flag, _)) = flags.into_iter().find(|(_, is_set)| *is_set) {
        bail!(
            "{flag}: the model is not served\n\
             hint: omit {flag}, or pass --panel with the URL of a server"
        );
    }
    Ok(())
}

/// Prints what a run would need.
fn dry_run(
    args: &AnswersArgs,
    source: CaseSource,
    writer: &mut dyn TextWriter,
    config: &AnswerRunConfig,
) -> Result<Exit> {
    let mut estimate: AnswerEstimate =
        estimate_answers(writer, source, &mut image_reader(args), config)?;
    if estimate.questions == 0 {
        bail!("{}: {NO_CASES}", args.questions.path.display());
    }
    estimate.set_limits(args.max_tokens, args.answerer.requests.price);
    write_stdout(&match args.format {
        OutputFormat::Json => {
            serde_json::to_string_pretty(&estimate).context("cannot write the estimate")? + "\n"
        }
        OutputFormat::Text => estimate.to_text(),
    })?;
    Ok(Exit::Done)
}

fn print_summary(args: &AnswersArgs, summary: &AnswerSummary) -> Result<()> {
    write_stdout(&match args.format {
        OutputFormat::Json => {
            serde_json::to_string_pretty(summary).context("cannot write the summary")? + "\n"
        }
        OutputFormat::Text => summary.to_text(),
    })
}

/// Returns the exit code of a complete run. `percent`: of the questions without an answer.
fn exit_status(args: &AnswersArgs, percent: f64, progress: &Progress) -> Exit {
    if percent > args.max_unanswered {
        progress.warn(&format!(
            "{percent:.1} % of the questions have no answer, more than --max-unanswered {}",
            args.max_unanswered
        ));
        return Exit::Unscored;
    }
    Exit::Done
}

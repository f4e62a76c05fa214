//! `acem3 data`: generation, checks and ratings of data.

use std::path::Path;

use acem3_vision::Limits;
use anyhow::Context;
use serde::Serialize;

use crate::cli::args::{
    CheckArgs, DataArgs, DataCommand, OutputFormat, PhantomArgs, PreferenceArgs, QualityArgs,
    SchemaArgs, SchemaOf,
};
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::output::print;
use crate::data::cases;
use crate::data::cases::{Case, CaseLine, InputProblem, UnscoredReason};
use crate::data::images::{ImageReader, relative};
use crate::data::phantoms::case_folder;
use crate::judging::run::record::Record;
use crate::statistics::Bootstrap;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::say;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::{plural, printable};
use crate::training::preferences::{
    PreferenceFolderConfig, predict_quality, read_evaluations, write_evaluation_preferences,
    write_phantom_preferences, write_rated,
};

/// Runs the command.
pub(super) fn run(args: &DataArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    match &args.command {
        DataCommand::Phantoms(args) => phantoms(args, verbosity),
        DataCommand::Preferences(args) => preferences(args, verbosity),
        DataCommand::Quality(args) => quality(args),
        DataCommand::Check(args) => check(args, verbosity),
        DataCommand::Schema(args) => schema(*args),
    }
}

fn phantoms(args: &PhantomArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    case_folder::folder(&args.out, args.count, args.seed, &Interrupt::listen()?)?;
    if !verbosity.quiet {
        let out = args.out.display();
        print(&format!("{} in {out}\n", plural(args.count, "case")))?;
    }
    Ok(Exit::Done)
}

fn preferences(args: &PreferenceArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let config = PreferenceFolderConfig {
        out: args.out.clone(),
        cases: args.count,
        seed: args.seed,
        negatives: args.negatives.clone(),
        layout: args.layout.into(),
        reward_tokens: args.reward_tokens,
    };
    let interrupt = Interrupt::listen()?;
    let written = match &args.evaluations {
        Some(file) => write_evaluation_preferences(file, &config, &interrupt)?,
        None => write_phantom_preferences(&config, &interrupt)?,
    };
    if !verbosity.quiet {
        let (pairs, out) = (plural(written.pairs, "pair"), args.out.display());
        print(&format!("{pairs} in {out}\n"))?;
        if written.skipped > 0 {
            let left_out = plural(written.skipped, "evaluation");
            say(&format!(
                "{left_out} skipped: no method of --negatives applies"
            ));
        }
    }
    Ok(Exit::Done)
}

fn quality(args: &QualityArgs) -> anyhow::Result<Exit> {
    let all = read_evaluations(&args.path)?.items;
    let bootstrap = Bootstrap {
        seed: args.seed,
        ..Bootstrap::default()
    };
    let found =
        predict_quality(&all, bootstrap).with_context(|| args.path.display().to_string())?;
    write_rated(&args.path, &args.out, &found.probabilities)?;
    let share = found.accuracy.value?;
    let usual = found.better.max(found.rated - found.better) as f64 / found.rated as f64;
    print(&match args.format {
        OutputFormat::Json => {
            let output = serde_json::json!({
                "evaluations": all.len(),
                "rated": found.rated,
                "better": found.better,
                "better_from": found.better_from,
                "right": share,
                "interval": found.accuracy.interval.ok(),
                "right_by_the_larger_class": usual,
            });
            output.to_string() + "\n"
        }
        OutputFormat::Text => {
            let [low, high] = found.accuracy.interval.unwrap_or([0.0, 1.0]);
            format!(
                "{} of {} rated, {} of them {} or better\n\
                 held-out accuracy: {:.1} % (95 % CI {:.1} to {:.1}); majority class {:.1} %\n",
                found.rated,
                plural(all.len() as u64, "evaluation"),
                found.better,
                found.better_from,
                100.0 * share,
                100.0 * low,
                100.0 * high,
                100.0 * usual
            )
        }
    })?;
    Ok(Exit::Done)
}

fn schema(args: SchemaArgs) -> anyhow::Result<Exit> {
    let schema = match args.of {
        SchemaOf::Cases => CaseLine::line_schema(),
        SchemaOf::Records => Record::line_schema(),
    };
    let text = serde_json::to_string_pretty(&schema).context("cannot write the schema as json")?;
    print(&(text + "\n"))?;
    Ok(Exit::Done)
}

/// One problem of a source.
#[derive(Debug, Serialize)]
struct ListedProblem {
    file: String,
    line: u64,
    case: Option<String>,
    reason: UnscoredReason,
    message: String,
}

/// Counts of a source.
#[derive(Debug, Default, Serialize)]
struct CheckReport {
    cases: u64,
    responses: u64,
    images: u64,
    problems: u64,
    unused_answers: u64,
}

fn check(args: &CheckArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let path = &args.source.path;
    let root = crate::data::cases::root(path);
    let mut source = cases::open(path, &args.source.options(args.min_responses))?;
    if !verbosity.quiet {
        for note in ignored_flags(&args.source, source.kind) {
            say(&note);
        }
    }
    let images = ImageReader::new(root.clone(), Limits::default());
    let mut images = images.viewed(args.source.dicom.view());
    let mut report = CheckReport::default();
    while let Some(entry) = source.next() {
        let problem = match entry {
            Ok(case) => {
                report.cases += 1;
                report.responses += case.responses.len() as u64;
                report.images += u64::from(case.image.is_some());
                image_problem(&case, &mut images, &relative(source.case_file(), &root))
            }
            Err(problem) => Some(ListedProblem::of(problem, &root)),
        };
        if let Some(problem) = problem {
            report.problems += 1;
            problem.print(args.format)?;
        }
    }
    report.unused_answers = source.unused_answers();
    report.print(args.format)?;
    Ok(if report.problems > 0 {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn image_problem(case: &Case, images: &mut ImageReader, file: &str) -> Option<ListedProblem> {
    let source = case.image.as_ref()?;
    let loaded = images
        .read(source)
        .and_then(|image| image.load(images.limits()));
    let message = loaded.err()?;
    let (file, case, line) = (file.to_owned(), Some(case.id.clone()), case.line);
    Some(ListedProblem {
        file,
        line,
        case,
        reason: UnscoredReason::Image,
        message,
    })
}

impl ListedProblem {
    fn of(problem: InputProblem, root: &Path) -> Self {
        Self {
            file: relative(&problem.file, root),
            line: problem.line,
            case: problem.id,
            reason: problem.reason,
            message: problem.message,
        }
    }

    fn print(&self, format: OutputFormat) -> anyhow::Result<()> {
        let text = match format {
            OutputFormat::Json => serde_json::to_string(self).context("cannot write a problem")?,
            OutputFormat::Text => {
                let case = self
                    .case
                    .as_ref()
                    .map_or(String::new(), |id| format!(" case {}:", printable(id)));
                let lines: Vec<String> = self.message.lines().map(printable).collect();
                let message = lines.join("\n  ");
                let reason = self.reason.name();
                format!(
                    "{}:{}:{case} {reason}: {message}",
                    printable(&self.file),
                    self.line
                )
            }
        };
        print(&(text + "\n"))
    }
}

impl CheckReport {
    fn print(&self, format: OutputFormat) -> anyhow::Result<()> {
        let text = match format {
            OutputFormat::Json => serde_json::to_string(self).context("cannot write the report")?,
            OutputFormat::Text => {
                let unused = match self.unused_answers {
                    0 => String::new(),
                    n => format!(", {} without a case", plural(n, "answer")),
                };
                format!(
                    "{} with {} and {}; {}{unused}",
                    plural(self.cases, "readable case"),
                    plural(self.images, "image"),
                    plural(self.responses, "response"),
                    plural(self.problems, "problem")
                )
            }
        };
        print(&(text + "\n"))
    }
}

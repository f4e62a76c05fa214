//! `acem3 data`: generation, checks and ratings of data.

use std::path::Path;

use acem3_vision::ImageLimits;
use anyhow::Context;
use serde::Serialize;

use crate::cli::args::{
    CheckArgs, DataArgs, DataCommand, OutputFormat, PhantomArgs, SchemaArgs, SchemaFileType,
};
use crate::cli::commands::answers::write_answers;
use crate::cli::commands::construction;
use crate::cli::commands::ignored_flags::ignored_flags;
use crate::cli::commands::import::import_cases;
use crate::cli::commands::knowledge::{index_corpora, search_index};
use crate::cli::commands::output::{NO_CASES, write_stdout};
use crate::cli::commands::{preferences, quality};
use crate::data::cases;
use crate::data::cases::{Case, CaseLine, InputProblem, UnscoredReason};
use crate::data::images::outside_images::OutsideImages;
use crate::data::images::{ImageReader, relative_path};
use crate::data::phantoms::case_folder;
use crate::judging::run::record::Record;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::cut::cut_message;
use crate::support::text::{escape_control_chars, format_count};

/// Runs the command.
pub(super) fn run(args: &DataArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    match &args.command {
        DataCommand::Answers(args) => write_answers(args, verbosity),
        DataCommand::Import(args) => import_cases(args, verbosity),
        DataCommand::Index(args) => index_corpora(args, verbosity),
        DataCommand::Phantoms(args) => write_phantoms(args, verbosity),
        DataCommand::Preferences(args) => preferences::run(args, verbosity),
        DataCommand::Quality(args) => quality::run(args, verbosity),
        DataCommand::Evaluations(args) => construction::evaluations::run(args, verbosity),
        DataCommand::Review(args) => construction::review::run(&args.command),
        DataCommand::Check(args) => check_cases(args, verbosity),
        DataCommand::Schema(args) => print_schema(*args),
        DataCommand::Search(args) => search_index(args),
    }
}

fn write_phantoms(args: &PhantomArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let edited = case_folder::write_folder(&args.out, args.count, args.seed, &interrupt)?;
    if let Some(edited) = edited {
        print_lines(&edited.note());
    }
    if !verbosity.quiet {
        let out = args.out.display();
        write_stdout(&format!("{} in {out}\n", format_count(args.count, "case")))?;
    }
    Ok(Exit::Done)
}

fn print_schema(args: SchemaArgs) -> anyhow::Result<Exit> {
    let schema = match args.file_type {
        SchemaFileType::Cases => CaseLine::line_schema(),
        SchemaFileType::Records => Record::line_schema(),
    };
    let text = serde_json::to_string_pretty(&schema).context("cannot write the schema as json")?;
    write_stdout(&(text + "\n"))?;
    Ok(Exit::Done)
}

/// A problem of a source, as printed.
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
    /// The first of the unused answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_unused_answer: Option<String>,
}

fn check_cases(args: &CheckArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let path = &args.source.path;
    let root = crate::data::cases::base_folder(path);
    let mut source = cases::open(path, &args.source.to_options(args.min_responses))?;
    if !verbosity.quiet {
        for note in ignored_flags(&args.source, source.kind) {
            print_lines(&note);
        }
    }
    let images = ImageReader::new(root.clone(), ImageLimits::default());
    let outside = OutsideImages::counted();
    let images = images.with_dicom_view(args.source.dicom.to_view());
    let mut images = images.with_outside_images(outside.clone());
    let mut report = CheckReport::default();
    while let Some(entry) = source.next() {
        let problem = match entry {
            Ok(case) => {
                report.cases += 1;
                report.responses += case.responses.len() as u64;
                report.images += u64::from(case.image.is_some());
                image_problem(&case, &mut images, &relative_path(source.case_file(), &root))
            }
            Err(problem) => Some(ListedProblem::from_problem(problem, &root)),
        };
        if let Some(problem) = problem {
            report.problems += 1;
            problem.cut().print(args.format)?;
        }
    }
    report.unused_answers = source.unmatched_answers();
    if report.unused_answers > 0 {
        report.first_unused_answer = source.first_unmatched_answer();
    }
    if !verbosity.quiet {
        source
            .take_field_notes()
            .into_iter()
            .chain(outside.note())
            .for_each(|note| print_lines(&note));
    }
    report.print(args.format)?;
    if report.cases + report.problems == 0 {
        print_lines(&format!("error: {}: {NO_CASES}", path.display()));
        return Ok(Exit::Failed);
    }
    Ok(if report.problems > 0 { Exit::Failed } else { Exit::Done })
}

fn image_problem(case: &Case, images: &mut ImageReader, file: &str) -> Option<ListedProblem> {
    let source = case.image.as_ref()?;
    let loaded = images.read(source).and_then(|image| image.load(images.limits()));
    let message = loaded.err()?;
    let (file, case, line) = (file.to_owned(), Some(case.id.clone()), case.line);
    Some(ListedProblem { file, line, case, reason: UnscoredReason::Image, message })
}

impl ListedProblem {
    fn from_problem(problem: InputProblem, root: &Path) -> Self {
        Self {
            file: relative_path(&problem.file, root),
            line: problem.line,
            case: problem.id.map(String::from),
            reason: problem.reason,
            message: problem.message,
        }
    }

    /// Cuts the texts that quote input.
    fn cut(mut self) -> Self {
        self.message = cut_message(&self.message).into_owned();
        self.case = self.case.map(|case| cut_message(&case).into_owned());
        self
    }

    fn print(&self, format: OutputFormat) -> anyhow::Result<()> {
        let text = match format {
            OutputFormat::Json => serde_json::to_string(self).context("cannot write a problem")?,
            OutputFormat::Text => {
                let case = self
                    .case
                    .as_ref()
                    .map_or(String::new(), |id| format!(" case {}:", escape_control_chars(id)));
                let lines: Vec<String> = self.message.lines().map(escape_control_chars).collect();
                let message = lines.join("\n  ");
                let reason = self.reason.name();
                format!(
                    "{}:{}:{case} {reason}: {message}",
                    escape_control_chars(&self.file),
                    self.line
                )
            }
        };
        write_stdout(&(text + "\n"))
    }
}

impl CheckReport {
    fn print(&self, format: OutputFormat) -> anyhow::Result<()> {
        let text = match format {
            OutputFormat::Json => serde_json::to_string(self).context("cannot write the report")?,
            OutputFormat::Text => {
                let first = self.first_unused_answer.as_ref();
                let first = first.map(|first| format!(" (first: {first})")).unwrap_or_default();
                let unused = match self.unused_answers {
                    0 => String::new(),
                    n => format!(", {} without a case{first}", format_count(n, "answer")),
                };
                format!(
                    "{} with {} and {}; {}{unused}",
                    format_count(self.cases, "readable case"),
                    format_count(self.images, "image"),
                    format_count(self.responses, "response"),
                    format_count(self.problems, "problem")
                )
            }
        };
        write_stdout(&(text + "\n"))
    }
}

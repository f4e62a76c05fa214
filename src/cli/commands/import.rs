//! `acem3 data import`: converts the files of other programs to cases.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

use crate::cli::args::ImportArgs;
use crate::cli::commands::output::{NO_CASES, write_stdout};
use crate::data::cases::{Case, CaseSource, InputProblem, Response, SourceKind, open_imports};
use crate::data::imports::case_writer::{CASES_FORM, CaseWriter};
use crate::data::imports::import_file::FileSample;
use crate::data::imports::imported_row::WITHOUT_IMAGE;
use crate::data::imports::question_images::QuestionImages;
use crate::data::imports::unknown_layout::columns_example;
use crate::support::files::folder::create_folder;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;

/// Number of problems that are printed.
const LISTED_PROBLEMS: u64 = 10;

/// Counts of an import.
#[derive(Debug, Default)]
struct ImportCounts {
    cases: u64,
    responses: u64,
    with_image: u64,
    with_reference: u64,
    /// Cases with two or more responses.
    with_pair: u64,
    problems: u64,
    /// Cases that were left out.
    unreadable: u64,
    /// The hint that was printed last.
    last_hint: String,
}

/// Runs the command. Creates the folder of the output if it is missing.
pub(super) fn import_cases(args: &ImportArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let folders = args.out.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let missing: Vec<&Path> = folders.take_while(|folder| !folder.exists()).collect();
    if let Some(folder) = missing.first() {
        create_folder(folder)
            .with_context(|| format!("--out {}: cannot create its folder", args.out.display()))?;
    }
    let result = convert(args, verbosity);
    if result.is_err() {
        // `remove_dir` does not remove a folder with files.
        for folder in missing {
            let _ = fs::remove_dir(folder);
        }
    }
    result
}

/// Reads the files and writes the cases.
fn convert(args: &ImportArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let paths = args.named_paths();
    let inputs: Vec<&Path> = paths.iter().map(|(_, path)| path.as_path()).collect();
    OutFile::check(&args.out, CASES_FORM, &inputs)?;
    let mut source = open_imports(&paths, &args.to_options())?;
    if !verbosity.quiet {
        source.take_field_notes().iter().for_each(|note| print_lines(note));
    }
    // A table of questions without answers files: its answers are in unknown columns.
    if source.kind == SourceKind::Questions && source.files.len() == 1 {
        return Err(no_response_error(&inputs));
    }
    let files: Vec<&Path> = source.files.iter().map(PathBuf::as_path).collect();
    let out = OutFile::check(&args.out, CASES_FORM, &files)?;
    let mut counts = ImportCounts::default();
    let mut writer = CaseWriter::new(&args.out);
    let mut questions = args.open_questions()?;
    let mut is_empty = false;
    let lines = std::iter::from_fn(|| {
        let Some(case) = next_case(&mut source, &mut counts, questions.is_some()) else {
            // An error keeps the file from being written.
            let is_first = !std::mem::replace(&mut is_empty, counts.responses == 0);
            return (is_empty && is_first).then(|| Err(anyhow!("nothing to write")));
        };
        Some(complete_case(case, questions.as_mut()).and_then(|case| {
            counts.add(&case);
            writer.write_case(case)
        }))
    });
    let written = out.write_chunks(lines);
    let listed = counts.problems.min(LISTED_PROBLEMS);
    if counts.problems > listed {
        print_lines(&format!("and {}", format_count(counts.problems - listed, "more problem")));
    }
    if is_empty {
        counts.check_cases(&inputs)?;
        return Err(no_response_error(&inputs));
    }
    written?;
    if !verbosity.quiet {
        write_stdout(&counts.to_text(&args.out, writer.images))?;
        let unmatched = source.unmatched_answers();
        if unmatched > 0 {
            write_stdout(&format!("unmatched   {}\n", format_count(unmatched, "answer")))?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the next case. Prints the problems before it, except images that are added later. A missing response
/// stays in the case as an empty text, so that the judge counts it as missing.
fn next_case(
    source: &mut CaseSource,
    counts: &mut ImportCounts,
    adds_images: bool,
) -> Option<Case> {
    let mut missing: Vec<Response> = Vec::new();
    loop {
        match source.next()? {
            Ok(mut case) => {
                case.responses.extend(missing);
                return Some(case);
            }
            Err(problem) if adds_images && problem.message.contains(WITHOUT_IMAGE) => {}
            Err(problem) => {
                if problem.affects_whole_case() {
                    missing.clear();
                } else if let Some(model) = problem.scope.model_without_response() {
                    missing.push(Response { model: model.to_owned(), text: String::new() });
                }
                counts.problems += 1;
                counts.unreadable += u64::from(problem.affects_whole_case());
                if counts.problems <= LISTED_PROBLEMS {
                    print_problem(&problem, counts);
                }
            }
        }
    }
}

fn complete_case(mut case: Case, questions: Option<&mut QuestionImages>) -> anyhow::Result<Case> {
    if let Some(questions) = questions {
        questions.complete(&mut case)?;
    }
    Ok(case)
}

/// Prints a problem. A hint is printed once.
fn print_problem(problem: &InputProblem, counts: &mut ImportCounts) {
    let text = problem.to_string();
    let (message, hint) = text.split_once("\nhint: ").unwrap_or((&text, ""));
    if hint == counts.last_hint {
        print_lines(message);
    } else {
        hint.clone_into(&mut counts.last_hint);
        print_lines(&text);
    }
}

/// Returns the error for files without a response, with the columns of a table that may have
/// answers.
fn no_response_error(inputs: &[&Path]) -> anyhow::Error {
    let first = inputs.first().map_or(Path::new(""), |path| path).display();
    let sample = match inputs {
        [file] if file.is_file() => FileSample::read(file).ok().flatten(),
        _ => None,
    };
    let sample = sample.filter(|sample| !sample.has_fields(&["responses"]));
    match sample.as_ref().and_then(|sample| Some((sample, columns_example(sample)?))) {
        Some((sample, roles)) => anyhow!(
            "{first}: no case has a response: no column is known to have answers, found the \
             columns {}\n\
             hint: name the columns with answers, for example --columns '{roles}' if these are answers; or add \
             answers with --answers",
            sample.columns().join(", ")
        ),
        None => anyhow!("{first}: no case has a response\nhint: add answers with --answers"),
    }
}

impl ImportArgs {
    /// Opens the data set with the questions, if the user named one.
    fn open_questions(&self) -> anyhow::Result<Option<QuestionImages>> {
        let options = self.to_options();
        self.questions.as_ref().map(|path| QuestionImages::open(path, &options)).transpose()
    }
}

impl ImportCounts {
    /// Counts a case. Empty texts stand for missing responses.
    fn add(&mut self, case: &Case) {
        let responses = case.responses.iter().filter(|response| !response.text.is_empty()).count();
        self.cases += 1;
        self.responses += responses as u64;
        self.with_pair += u64::from(responses > 1);
        self.with_image += u64::from(case.image.is_some());
        self.with_reference += u64::from(case.reference.is_some());
    }

    /// Checks that there is a case.
    fn check_cases(&self, inputs: &[&Path]) -> anyhow::Result<()> {
        let first = inputs.first().map_or(Path::new(""), |path| path).display();
        match (self.cases, self.problems) {
            (0, 0) => bail!("{first}: {NO_CASES}"),
            (0, problems) => bail!(
                "{first}: no case could be read: {}\n\
                 hint: correct the problems above; `acem3 data check` lists all",
                format_count(problems, "problem")
            ),
            _ => Ok(()),
        }
    }

    fn to_text(&self, out: &Path, images: u64) -> String {
        let written = match images {
            0 => String::new(),
            n => format!(", {} written", format_count(n, "file")),
        };
        let cases = self.cases;
        let mut lines = vec![
            format!(
                "{} with {} in {}",
                format_count(cases, "case"),
                format_count(self.responses, "response"),
                out.display()
            ),
            format!("images      {} of {cases}{written}", self.with_image),
            format!("references  {} of {cases}", self.with_reference),
        ];
        if self.problems > 0 {
            lines.push(format!("problems    {}", self.problems));
        }
        if self.unreadable > 0 {
            lines.push(format!(
                "left out    {} of {}",
                self.unreadable,
                format_count(cases + self.unreadable, "case")
            ));
        }
        if self.with_pair == 0 {
            let hint = "no case has two responses, so there is no pair to judge: import the files \
                        of a second model together with these, or judge each response alone with \
                        `acem3 judge --form single` or `--form correctness`";
            lines.push(hint.to_owned());
        }
        lines.join("\n") + "\n"
    }
}

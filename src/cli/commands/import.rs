//! `acem3 data import`: converts the files of other programs to cases.

use std::path::{Path, PathBuf};

use crate::cli::args::ImportArgs;
use crate::cli::commands::output::{NO_CASES, write_stdout};
use crate::data::cases::{Case, CaseSource, InputProblem, open_imports};
use crate::data::imports::case_writer::{CASES_FORM, CaseWriter};
use crate::data::imports::import_file::FileSample;
use crate::data::imports::imported_row::WITHOUT_IMAGE;
use crate::data::imports::question_images::QuestionImages;
use crate::data::imports::unknown_layout::columns_example;
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
    /// The hint that was printed last.
    last_hint: String,
}

/// Runs the command.
pub(super) fn import_cases(args: &ImportArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let paths = args.named_paths();
    let inputs: Vec<&Path> = paths.iter().map(|(_, path)| path.as_path()).collect();
    OutFile::check(&args.out, CASES_FORM, &inputs)?;
    let mut source = open_imports(&paths, &args.to_options())?;
    if !verbosity.quiet {
        source.take_field_notes().iter().for_each(|note| print_lines(note));
    }
    let files: Vec<&Path> = source.files.iter().map(PathBuf::as_path).collect();
    let out = OutFile::check(&args.out, CASES_FORM, &files)?;
    let mut counts = ImportCounts::default();
    let mut writer = CaseWriter::new(&args.out);
    let mut questions = args.open_questions()?;
    let lines = std::iter::from_fn(|| {
        let case = next_case(&mut source, &mut counts, questions.is_some())?;
        Some(complete_case(case, questions.as_mut()).and_then(|case| {
            counts.add(&case);
            writer.write_case(case)
        }))
    });
    out.write_chunks(lines)?;
    let listed = counts.problems.min(LISTED_PROBLEMS);
    if counts.problems > listed {
        print_lines(&format!("and {}", format_count(counts.problems - listed, "more problem")));
    }
    if counts.cases == 0 {
        let first = inputs.first().map_or(Path::new(""), |path| path).display();
        let reason = match counts.problems {
            0 => NO_CASES.to_owned(),
            problems => format!("no case could be read: {}", format_count(problems, "problem")),
        };
        print_lines(&format!("error: {first}: {reason}"));
        return Ok(Exit::Failed);
    }
    if !verbosity.quiet {
        write_stdout(&counts.to_text(&args.out, writer.images, &inputs))?;
    }
    Ok(Exit::Done)
}

/// Returns the next case. Prints the problems before it, except images that are added later.
fn next_case(
    source: &mut CaseSource,
    counts: &mut ImportCounts,
    adds_images: bool,
) -> Option<Case> {
    loop {
        match source.next()? {
            Ok(case) => return Some(case),
            Err(problem) if adds_images && problem.message.contains(WITHOUT_IMAGE) => {}
            Err(problem) => {
                counts.problems += 1;
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

/// Describes how to add answers, with the columns of a table that may have them.
fn no_response_hint(inputs: &[&Path]) -> String {
    let answers = "no case has a response: add answers with --answers";
    let sample = match inputs {
        [file] if file.is_file() => FileSample::read(file).ok().flatten(),
        _ => None,
    };
    match sample.as_ref().and_then(columns_example) {
        Some(roles) => format!("{answers}, or name their columns: --columns '{roles}'"),
        None => answers.to_owned(),
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
    fn add(&mut self, case: &Case) {
        self.cases += 1;
        self.responses += case.responses.len() as u64;
        self.with_image += u64::from(case.image.is_some());
        self.with_reference += u64::from(case.reference.is_some());
        self.with_pair += u64::from(case.responses.len() > 1);
    }

    fn to_text(&self, out: &Path, images: u64, inputs: &[&Path]) -> String {
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
        if self.responses == 0 {
            lines.push(no_response_hint(inputs));
        } else if self.with_pair == 0 {
            let hint = "no case has two responses, so there is no pair to judge: import the files \
                        of a second model together with these";
            lines.push(hint.to_owned());
        }
        lines.join("\n") + "\n"
    }
}

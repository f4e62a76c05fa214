//! `acem3 data import`: converts the files of other programs to cases.

use std::path::Path;

use crate::cli::args::ImportArgs;
use crate::cli::commands::output::{NO_CASES, write_stdout};
use crate::data::cases::{CaseSource, InputProblem, open_imports};
use crate::data::imports::case_writer::{CASES_FORM, CaseWriter};
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
}

/// Runs the command.
pub(super) fn import_cases(args: &ImportArgs, verbosity: Verbosity) -> anyhow::Result<Exit> {
    let paths = args.named_paths();
    let inputs: Vec<&Path> = paths.iter().map(|(_, path)| path.as_path()).collect();
    let out = OutFile::check(&args.out, CASES_FORM, &inputs)?;
    let mut source = open_imports(&paths, &args.to_options())?;
    if !verbosity.quiet {
        source.take_field_notes().iter().for_each(|note| print_lines(note));
    }
    let mut counts = ImportCounts::default();
    let mut writer = CaseWriter::new(&args.out);
    out.write_chunks(std::iter::from_fn(|| next_line(&mut source, &mut writer, &mut counts)))?;
    let listed = counts.problems.min(LISTED_PROBLEMS);
    if counts.problems > listed {
        print_lines(&format!("and {}", format_count(counts.problems - listed, "more problem")));
    }
    if counts.cases == 0 {
        let first = inputs.first().map_or(Path::new(""), |path| path).display();
        print_lines(&format!("error: {first}: {NO_CASES}"));
        return Ok(Exit::Failed);
    }
    if !verbosity.quiet {
        write_stdout(&counts.to_text(&args.out, writer.images))?;
    }
    Ok(Exit::Done)
}

/// Returns the line of the next case. Prints the problems before it.
fn next_line(
    source: &mut CaseSource,
    writer: &mut CaseWriter,
    counts: &mut ImportCounts,
) -> Option<anyhow::Result<String>> {
    loop {
        match source.next()? {
            Ok(case) => {
                counts.cases += 1;
                counts.responses += case.responses.len() as u64;
                counts.with_image += u64::from(case.image.is_some());
                counts.with_reference += u64::from(case.reference.is_some());
                counts.with_pair += u64::from(case.responses.len() > 1);
                return Some(writer.write_case(case));
            }
            Err(problem) => {
                counts.problems += 1;
                if counts.problems <= LISTED_PROBLEMS {
                    print_problem(&problem);
                }
            }
        }
    }
}

fn print_problem(problem: &InputProblem) {
    print_lines(&problem.to_string());
}

impl ImportCounts {
    fn to_text(&self, out: &Path, images: u64) -> String {
        let mut text = format!(
            "{} with {} in {}\nimages      {} of {}{}\nreferences  {} of {}\n",
            format_count(self.cases, "case"),
            format_count(self.responses, "response"),
            out.display(),
            self.with_image,
            self.cases,
            if images > 0 {
                format!(", {} written", format_count(images, "file"))
            } else {
                String::new()
            },
            self.with_reference,
            self.cases,
        );
        if self.problems > 0 {
            text += &format!("left out    {}\n", format_count(self.problems, "problem"));
        }
        if self.with_pair == 0 {
            text += "no case has two responses, so there is no pair to judge: import the files of a \
                     second model together with these\n";
        }
        text
    }
}

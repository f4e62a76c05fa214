//! Messages about lines of answers files that cannot be used.

use std::path::Path;

use anyhow::{Result, bail};

use crate::data::cases::answers::answer_line::MalformedAnswer;
use crate::data::cases::case::{InputProblem, ProblemScope};
use crate::support::text::format_count;

/// The form of a line, for hints.
const LINE_HINT: &str =
    "hint: each line must be {\"question_id\": ..., \"text\": ..., \"model_id\": ...}";

/// Creates the problem of an unusable line of an answers file.
pub(super) fn line_problem(
    path: &Path,
    line: u64,
    question: Option<String>,
    message: String,
) -> InputProblem {
    InputProblem {
        scope: ProblemScope::Response { model: None, pairs: Box::default() },
        ..InputProblem::parse_error(path, line, question, message)
    }
}

/// Returns the name of a file in records, independent of the path on the command line.
pub(super) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Returns the reason for a missing answer: an unusable line.
pub(super) fn unusable_message(model: &str, problem: &InputProblem) -> String {
    let (file, line) = (file_name(&problem.file), problem.line);
    let perhaps = if problem.id.is_none() { "perhaps " } else { "" };
    let message = &problem.message;
    format!(
        "the answer of model {model} is missing, {perhaps}because of {file} line {line}: {message}"
    )
}

/// Checks that a file has a readable line. Without one, its model would be missing from the results.
///
/// # Errors
/// The file has no readable line.
pub(super) fn check_readable(
    path: &Path,
    models: &[usize],
    malformed: &[(u64, MalformedAnswer)],
) -> Result<()> {
    match (models, malformed) {
        ([], []) => bail!(
            "answers file {}: is empty, so its model has no answers\n\
             hint: write the answers again, or leave the file out",
            path.display()
        ),
        ([], [(line, first), ..]) => bail!(
            "answers file {}: none of {} can be read; line {line}: {}\n{LINE_HINT}; \
             `acem3 data import` reads files of other programs",
            path.display(),
            format_count(malformed.len() as u64, "line"),
            first.message
        ),
        _ => Ok(()),
    }
}

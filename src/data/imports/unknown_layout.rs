//! The error for a file with an unknown layout: what was seen, and the command that would read it.

use std::fmt::Write as _;
use std::path::Path;

use super::columns::column_guess::{guess_roles, is_attribute};
use super::columns::column_roles::{AnswerColumn, ColumnRoles};
use super::import_file::FileSample;
use super::rows::row_format::first_line;
use crate::support::text::escape_control_chars;

/// Maximum number of columns in the message.
const LISTED_COLUMNS: usize = 40;
/// Maximum number of answer columns in the example.
const EXAMPLE_ANSWERS: usize = 8;
/// Maximum length of the name of a column in the message.
const NAME_CHARS: usize = 60;

/// Describes a file: its columns, its first line, and a command with `--columns`.
pub(crate) fn describe(path: &Path, sample: Option<&FileSample>) -> String {
    let mut text = format!("{}: unknown layout", path.display());
    let columns = sample.map(FileSample::columns).unwrap_or_default();
    if !columns.is_empty() {
        let cut = |name: &String| {
            escape_control_chars(&name.chars().take(NAME_CHARS).collect::<String>())
        };
        let mut names: Vec<String> = columns.iter().take(LISTED_COLUMNS).map(cut).collect();
        if columns.len() > LISTED_COLUMNS {
            names.push(format!("and {} more", columns.len() - LISTED_COLUMNS));
        }
        let _ = write!(text, ", found the columns {}", names.join(", "));
    }
    if let Some(line) = first_line(path) {
        let _ = write!(text, "; the first line is `{}`", escape_control_chars(&line));
    }
    match sample.and_then(columns_example) {
        Some(roles) => {
            text + &format!(
                "\nhint: name the columns, for example `acem3 data import {} --columns '{roles}' \
                 --out cases.jsonl`",
                path.display()
            )
        }
        None => text,
    }
}

/// Returns an example for `--columns`: the guessed roles and, if the question is known, all other
/// columns of texts as answers. What cannot be known is `COLUMN`.
pub(crate) fn columns_example(sample: &FileSample) -> Option<ColumnRoles> {
    let columns = sample.columns();
    if columns.is_empty() {
        return None;
    }
    let mut roles = guess_roles(&columns);
    if roles.id.is_none() {
        roles.id = columns.iter().find(|name| sample.has_distinct_numbers(name)).cloned();
    }
    if roles.image.is_none() {
        roles.image = sample.image_column(&roles);
    }
    let known: Vec<String> = roles.columns().map(str::to_owned).collect();
    if roles.question.is_some() && roles.answers.is_empty() {
        let may_answer = |name: &String| {
            let is_part = known
                .iter()
                .any(|known| name.strip_prefix(known.as_str()).is_some_and(|r| r.starts_with('.')));
            !known.contains(name) && !is_part && !is_attribute(name) && sample.has_texts(name)
        };
        let others: Vec<String> = columns.into_iter().filter(may_answer).collect();
        // With many columns, most are something else.
        if others.len() <= EXAMPLE_ANSWERS {
            let named = others.into_iter();
            roles.answers =
                named.map(|column| AnswerColumn { model: Some(column.clone()), column }).collect();
        }
    }
    let placeholder = || "COLUMN".to_owned();
    roles.question.get_or_insert_with(placeholder);
    if roles.answers.is_empty() {
        roles.answers.push(AnswerColumn { model: Some("MODEL".to_owned()), column: placeholder() });
    }
    Some(roles)
}

//! The error for a file with an unknown layout: what was seen, and the command that would read it.

use std::path::Path;

use super::columns::column_guess::guess_roles;
use super::columns::column_roles::AnswerColumn;
use super::import_file::FileSample;
use super::rows::table_format::first_line;
use crate::support::text::escape_control_chars;

/// Maximum number of columns in the message.
const LISTED_COLUMNS: usize = 40;
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
        text += &format!(", found the columns {}", names.join(", "));
    }
    if let Some(line) = first_line(path) {
        text += &format!("\nfirst line: {}", escape_control_chars(&line));
    }
    if columns.is_empty() {
        return text;
    }
    let mut roles = guess_roles(&columns);
    let known: Vec<&str> = roles.columns().collect();
    let mut others = columns.iter().filter(|name| !known.contains(&name.as_str())).cloned();
    let placeholder = || "COLUMN".to_owned();
    let question = roles.question.clone().or_else(|| others.next()).unwrap_or_else(placeholder);
    if roles.answers.is_empty() {
        let column = others.next().unwrap_or_else(placeholder);
        roles.answers.push(AnswerColumn { model: Some("MODEL".to_owned()), column });
    }
    roles.question = Some(question);
    text + &format!(
        "\nhint: name the columns, for example `acem3 data import {} --columns '{roles}' --out cases.jsonl`",
        path.display()
    )
}

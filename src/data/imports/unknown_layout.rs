//! The error for a file with an unknown layout: what was seen, and the command that would read it.

use std::fmt::Write as _;
use std::path::Path;

use super::columns::column_guess::{guess_roles, is_attribute, one_answer_per_row};
use super::columns::column_roles::{AnswerColumn, ColumnRoles};
use super::import_file::FileSample;
use super::rows::row_format::{first_line, object_fields};
use crate::support::text::{escape_control_chars, escape_start};

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
        let mut names: Vec<String> =
            columns.iter().take(LISTED_COLUMNS).map(|name| cut_name(name)).collect();
        if columns.len() > LISTED_COLUMNS {
            names.push(format!("and {} more", columns.len() - LISTED_COLUMNS));
        }
        let _ = write!(text, ", found the columns {}", names.join(", "));
    }
    match first_line(path) {
        Some(line) => {
            let _ = write!(text, "; the first line is `{}`", escape_control_chars(&line));
        }
        None if sample.is_none() => text.push_str("; the file is not text"),
        None => {}
    }
    if let Some(hint) = object_hint(path) {
        return text + &hint;
    }
    match sample.and_then(columns_example) {
        Some(roles) => {
            text + &format!(
                "\nhint: name the columns, for example `acem3 data import {} --columns '{roles}' \
                 --out cases.jsonl`",
                path.display()
            )
        }
        None => format!("{text}\nhint: {}", other_file_hint(path)),
    }
}

/// Layouts that the program reads, for hints.
pub(crate) const KNOWN_LAYOUTS: &str = "a folder with cases.jsonl, or with questions.csv and \
    answers/*.jsonl; a .jsonl file of cases; VQA-RAD's json with images/; SLAKE's json with imgs/; \
    .parquet files with image, question and answer; files of lm-evaluation-harness, lmms-eval, \
    VLMEvalKit, MedEvalKit, HELM, LLaVA or the OpenAI batch API; a table with answers as .csv, .tsv, \
    .json, .jsonl, .parquet or .xlsx";

/// Returns the hint for a file that is one JSON object without a single array of rows.
fn object_hint(path: &Path) -> Option<String> {
    let is_json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let fields = is_json.then(|| object_fields(path).ok().flatten()).flatten()?;
    if fields.names.is_empty() {
        return None;
    }
    let names: Vec<String> =
        fields.names.iter().take(LISTED_COLUMNS).map(|n| cut_name(n)).collect();
    let hint = match fields.arrays.as_slice() {
        [] => "write the rows as an array of objects, or one object per line",
        [_] => return None,
        _ => "write one of its arrays of objects to a file of its own",
    };
    Some(format!("; it is one object with the fields {}\nhint: {hint}", names.join(", ")))
}

/// Returns the hint for a file whose format is not known.
fn other_file_hint(path: &Path) -> String {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    let what = match extension.as_deref() {
        Some("xls" | "xlsb" | "xlsm" | "ods") => "save the table as .xlsx or .csv",
        Some("pkl" | "pickle" | "npy" | "npz" | "pt") => {
            "write the rows as .jsonl or .csv with the program that wrote the file"
        }
        Some("csv" | "tsv" | "json" | "jsonl" | "ndjson" | "parquet" | "xlsx") => "",
        _ => {
            "name a table .csv or .tsv and a file with one JSON object per line .jsonl, then run \
             `acem3 data import FILE --columns question=COLUMN,answer:MODEL=COLUMN --out cases.jsonl`"
        }
    };
    let separator = if what.is_empty() { "" } else { "; " };
    format!("{what}{separator}expected {KNOWN_LAYOUTS}")
}

fn cut_name(name: &str) -> String {
    escape_start(name, NAME_CHARS)
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
    if roles.answers.is_empty()
        && let Some(per_row) = one_answer_per_row(&columns, &roles)
    {
        roles = per_row;
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

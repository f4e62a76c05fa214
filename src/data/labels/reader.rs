//! Reads label files: tables (CSV), objects (JSONL) or exports of Label Studio (JSON).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Map, Value};

use super::column::LabelColumn;
use super::entry::{LabelEntry, UNNAMED_RATER, parse_row};
use super::label_file::{LabelFile, LabelOptions, line_error};
use super::label_studio::tasks_file;
use super::record_labels;
use crate::data::cases::formats::encoding::UTF8_HINT;
use crate::data::cases::{CsvSheet, Lines, json_type, parse_id, parse_labels};
use crate::support::files::{csv_formula, regular_file};

/// Columns that identify a table written by `acem3 report`.
const REPORT_COLUMNS: [&str; 4] = ["judge", "status", "order", "final_a"];

/// Cells of a table row or of an object: column, name and text.
type RowCells<'a> = Vec<(LabelColumn, &'a str, String)>;

/// Reads a label file.
///
/// # Errors
///
/// If the file cannot be opened or a row is invalid. The message contains the file, the line and
/// the expected and found values. Labels are scarce, so an invalid row is never skipped silently.
pub fn read(path: &Path, options: &LabelOptions) -> Result<LabelFile> {
    let mut opened = regular_file::open(path).with_context(|| {
        format!(
            "--labels {}: the file cannot be opened\n\
             hint: check the path and its permissions; `acem3 agree --help` shows the formats",
            path.display()
        )
    })?;
    let json = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("jsonl") || e.eq_ignore_ascii_case("json"));
    let is_array = tasks_file::starts_as_array(&mut opened)
        .with_context(|| format!("--labels {}: the file cannot be read", path.display()))?;
    let mut file = match (is_array, json) {
        (true, _) => tasks_file::read(path, opened, options)?,
        (false, true) => read_objects(path, opened, options)?,
        (false, false) => read_table(path, options)?,
    };
    if file.entries.is_empty() {
        bail!(
            "{}: no labels found\nhint: run `acem3 agree --help` for the formats of label files",
            path.display()
        );
    }
    if let Some(scale) = options.scale {
        for entry in &mut file.entries {
            entry.rescale(scale).map_err(|error| line_error(path, entry.line, &error))?;
        }
    }
    Ok(file)
}

fn read_table(path: &Path, options: &LabelOptions) -> Result<LabelFile> {
    let sheet = CsvSheet::open(path)?;
    let mut columns: Vec<LabelColumn> = sheet
        .names
        .iter()
        .map(|name| LabelColumn::from_header(name, &options.rater_columns))
        .collect();
    ignore_judge_columns(&mut columns, &sheet.names);
    check_columns(&columns, &sheet.names, &options.rater_columns)
        .map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let mut file = LabelFile::default();
    for (column, name) in columns.iter().zip(&sheet.names) {
        if *column == LabelColumn::Other {
            file.unused_columns.insert(name.clone());
        }
    }
    for (line, row) in sheet.rows {
        let row = row.map_err(|error| line_error(path, line, &error))?;
        if row.len() != columns.len() {
            let error = format!("the row has {} columns, expected {}", row.len(), columns.len());
            let hint = "quote texts that contain commas or quotes";
            return Err(line_error(path, line, &format!("{error}\nhint: {hint}")));
        }
        let mut cells = RowCells::new();
        for ((column, name), bytes) in columns.iter().zip(&sheet.names).zip(row.iter()) {
            let text = std::str::from_utf8(bytes).map_err(|_| {
                let error = format!("column `{name}` is not UTF-8{UTF8_HINT}");
                line_error(path, line, &error)
            })?;
            cells.push((column.clone(), name, csv_formula::unescape_formula(text).to_owned()));
        }
        let found = parse_row(line, &cells).map_err(|error| line_error(path, line, &error))?;
        file.entries.extend(found);
    }
    Ok(file)
}

/// Ignores the judge's columns in a table written by `acem3 report`: `order` always, and `label` if
/// a rater added another rating column.
fn ignore_judge_columns(columns: &mut [LabelColumn], names: &[String]) {
    if !REPORT_COLUMNS.iter().all(|name| names.iter().any(|known| known == name)) {
        return;
    }
    let judge_columns = ["order", "label"];
    let is_rating =
        |column: &LabelColumn| matches!(column, LabelColumn::Value | LabelColumn::RaterRating(_));
    let mut named_columns = columns.iter().zip(names);
    let has_added_rating = named_columns
        .any(|(column, name)| is_rating(column) && !judge_columns.contains(&name.as_str()));
    for (column, name) in columns.iter_mut().zip(names) {
        if name == "order" || has_added_rating && name == "label" {
            *column = LabelColumn::Other;
        }
    }
}

/// Checks that a table has the columns required for labels.
fn check_columns(
    columns: &[LabelColumn],
    names: &[String],
    rater_columns: &[String],
) -> Result<(), String> {
    let has = |wanted: &dyn Fn(&LabelColumn) -> bool| columns.iter().any(wanted);
    let found = names.join(", ");
    if let Some(missing) = rater_columns.iter().find(|name| !names.contains(name)) {
        return Err(format!(
            "no column `{missing}`, found {found}\nhint: --rater-columns takes column names of this file"
        ));
    }
    if !has(&|c| *c == LabelColumn::Case) {
        return Err(format!(
            "no column `case`, found {found}\n\
             hint: the first line must be a header with case, model and score, or with case, model_a, \
             model_b and preference; see `acem3 agree --help`"
        ));
    }
    let values = columns.iter().zip(names).filter(|(c, _)| **c == LabelColumn::Value);
    let values: Vec<&str> = values.map(|(_, name)| name.as_str()).collect();
    if let [first, second, ..] = values[..] {
        return Err(format!(
            "the columns `{first}` and `{second}` both contain ratings, expected one rating column\n\
             hint: pass --rater-columns {first},{second} if they are two raters; otherwise remove or rename one"
        ));
    }
    let is_rating = |c: &LabelColumn| {
        matches!(
            c,
            LabelColumn::Value
                | LabelColumn::PairScore(_)
                | LabelColumn::TargetRating(_)
                | LabelColumn::RaterRating(_)
        )
    };
    if !has(&is_rating) {
        return Err(format!(
            "no rating column, found {found}\n\
             hint: name a column `score`, `preference` or after a criterion, or pass rater columns with --rater-columns"
        ));
    }
    Ok(())
}

fn read_objects(path: &Path, opened: File, options: &LabelOptions) -> Result<LabelFile> {
    let mut file = LabelFile::default();
    for (line, text) in Lines::new(BufReader::new(opened)) {
        let text = text.map_err(|error| line_error(path, line, &error))?;
        let value: Value = serde_json::from_str(&text).map_err(|e| {
            let hint = "write one JSON object per line (JSONL)";
            line_error(path, line, &format!("malformed JSON: {e}\nhint: {hint}"))
        })?;
        let Value::Object(object) = value else {
            let error = format!("expected an object, found {}", json_type(&value));
            return Err(line_error(path, line, &error));
        };
        let found = if object.get("labels").is_some_and(Value::is_object) {
            parse_case(line, object)
        } else {
            parse_object(line, &object, options, &mut file.unused_columns)
        };
        file.entries.extend(found.map_err(|error| line_error(path, line, &error))?);
    }
    Ok(file)
}

/// Reads a flat object, whose fields are columns.
fn parse_object(
    line: u64,
    object: &Map<String, Value>,
    options: &LabelOptions,
    unused: &mut BTreeSet<String>,
) -> Result<Vec<LabelEntry>, String> {
    let mut cells = RowCells::new();
    for (name, value) in object {
        let column = LabelColumn::from_header(name, &options.rater_columns);
        let text = match value {
            _ if column == LabelColumn::Other => {
                unused.insert(name.clone());
                continue;
            }
            Value::Null => String::new(),
            Value::Number(number) if column != LabelColumn::Case => number.to_string(),
            other => {
                parse_id(other).or_else(|| other.as_str().map(str::to_owned)).ok_or_else(|| {
                    format!("`{name}`: expected a number or a string, found {}", json_type(other))
                })?
            }
        };
        cells.push((column, name, text));
    }
    parse_row(line, &cells)
}

/// Reads a case in the format of `acem3 judge`, whose `labels` have one score per response.
fn parse_case(line: u64, mut object: Map<String, Value>) -> Result<Vec<LabelEntry>, String> {
    let labels = object.remove("labels").unwrap_or_default();
    let labels = parse_labels(labels)?;
    let text =
        |names: [&str; 2]| names.iter().find_map(|name| object.get(*name).and_then(parse_id));
    let case = text(["case", "id"]).ok_or("the case id is missing")?;
    let rater = text(["rater", "annotator"]).unwrap_or_else(|| UNNAMED_RATER.to_owned());
    let model = |value: &Value| match value {
        Value::Object(response) => response.get("model").and_then(parse_id),
        other => parse_id(other),
    };
    let model_list = ["models", "pair", "responses"]
        .iter()
        .filter_map(|name| object.get(*name)?.as_array())
        .find_map(|list| list.iter().map(model).collect::<Option<Vec<String>>>());
    let models = model_list.ok_or(
        "labels without models\n\
         hint: add \"models\": [\"a\", \"b\"] in the order of the scores",
    )?;
    record_labels::entries_per_model(line, &case, &rater, &models, &labels)
}

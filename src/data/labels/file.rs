//! Reading a label file: a table (CSV), or objects (JSONL).

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Map, Value};

use super::column::LabelColumn;
use super::entry::{LabelEntry, LabelValue, ONE_RATER, entries};
use super::record_labels;
use crate::data::cases::{CsvSheet, Lines, id_text, kind, parse_labels};
use crate::support::files::{csv_formula, regular_file};

/// How a label file is to be understood.
#[derive(Clone, Debug, Default)]
pub struct LabelOptions {
    /// Columns that hold the ratings of one rater each.
    pub raters: Vec<String>,
    /// The least and greatest score of the labels' scale; it is stretched to 0 to 5.
    pub scale: Option<[f64; 2]>,
}

/// A label file's content.
#[derive(Clone, Debug, Default)]
pub struct LabelFile {
    /// Scores and preferences.
    pub entries: Vec<LabelEntry>,
    /// Columns that were not understood, and so not used.
    pub unused: BTreeSet<String>,
}

impl LabelFile {
    /// What is told of scores that are not between 0 and 5, where there are any.
    pub fn beyond(&self) -> Option<String> {
        let scores = self.entries.iter().filter_map(|entry| match entry.what {
            LabelValue::Score { value, .. } => Some((entry.line, value)),
            LabelValue::Preference { .. } => None,
        });
        let scores: Vec<(u64, f64)> = scores.collect();
        let beyond = scores
            .iter()
            .filter(|(_, score)| !(0.0..=5.0).contains(score));
        let (line, first) = beyond.clone().next()?;
        let ends = scores.iter().fold(
            [f64::INFINITY, -f64::INFINITY],
            |[low, high], (_, score)| [low.min(*score), high.max(*score)],
        );
        Some(format!(
            "{} of {} scores are not from 0 to 5 as the judge's are, first {first} in line {line}; all are from {} to \
             {}\nhint: mend what is a slip; labels of another scale are made comparable in errors and kappas by --scale \
             MIN,MAX, and in correlations and orders they are right as they are",
            beyond.count(),
            scores.len(),
            ends[0],
            ends[1]
        ))
    }
}

/// Columns by which a table is known that `acem3 report` wrote.
const EXPORTED: [&str; 4] = ["judge", "status", "order", "final_a"];

/// Where a row's cells come from: a table's row, or an object.
type RowCells<'a> = Vec<(LabelColumn, &'a str, String)>;

/// Reads a label file.
///
/// # Errors
///
/// If it cannot be opened or a row cannot be understood: the file, the line, what was expected and what
/// was found are said. Labels are few and dear; none is passed over in silence.
pub fn read(path: &Path, options: &LabelOptions) -> Result<LabelFile> {
    let json = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("jsonl") || e.eq_ignore_ascii_case("json"));
    let mut file = if json {
        objects(path, options)?
    } else {
        table(path, options)?
    };
    if file.entries.is_empty() {
        bail!(
            "{}: no label in it\nhint: `acem3 agree --help` shows the forms of label files",
            path.display()
        );
    }
    if let Some(scale) = options.scale {
        for entry in &mut file.entries {
            entry
                .stretch(scale)
                .map_err(|fault| at(path, entry.line, &fault))?;
        }
    }
    Ok(file)
}

fn at(path: &Path, line: u64, fault: &str) -> anyhow::Error {
    anyhow!("{} line {line}: {fault}", path.display())
}

fn table(path: &Path, options: &LabelOptions) -> Result<LabelFile> {
    let sheet = CsvSheet::open(path)?;
    let mut columns: Vec<LabelColumn> = sheet
        .names
        .iter()
        .map(|name| LabelColumn::named(name, &options.raters))
        .collect();
    leave_own(&mut columns, &sheet.names);
    check(&columns, &sheet.names, &options.raters)
        .map_err(|fault| anyhow!("{}: {fault}", path.display()))?;
    let mut file = LabelFile::default();
    for (column, name) in columns.iter().zip(&sheet.names) {
        if *column == LabelColumn::Other {
            file.unused.insert(name.clone());
        }
    }
    for (line, row) in sheet.rows {
        let row = row.map_err(|fault| at(path, line, &fault))?;
        if row.len() != columns.len() {
            let fault = format!(
                "the row has {} columns, expected {}",
                row.len(),
                columns.len()
            );
            let hint = "put a text with commas or quotes into quotes";
            return Err(at(path, line, &format!("{fault}\nhint: {hint}")));
        }
        let mut cells = RowCells::new();
        for ((column, name), bytes) in columns.iter().zip(&sheet.names).zip(row.iter()) {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| at(path, line, &format!("column `{name}` is not UTF-8")))?;
            cells.push((
                column.clone(),
                name,
                csv_formula::unescape_formula(text).to_owned(),
            ));
        }
        let found = entries(line, &cells).map_err(|fault| at(path, line, &fault))?;
        file.entries.extend(found);
    }
    Ok(file)
}

/// In a table that a report wrote, the order is the judge's own and no label; nor are the labels that the report
/// was made with, where a person added others.
fn leave_own(columns: &mut [LabelColumn], names: &[String]) {
    if !EXPORTED
        .iter()
        .all(|name| names.iter().any(|known| known == name))
    {
        return;
    }
    let own = ["order", "label"];
    let rating = |column: &LabelColumn| matches!(column, LabelColumn::Value | LabelColumn::By(_));
    let mut pairs = columns.iter().zip(names);
    let added = pairs.any(|(column, name)| rating(column) && !own.contains(&name.as_str()));
    for (column, name) in columns.iter_mut().zip(names) {
        if name == "order" || added && name == "label" {
            *column = LabelColumn::Other;
        }
    }
}

/// Whether the columns of a table can hold labels at all.
fn check(columns: &[LabelColumn], names: &[String], raters: &[String]) -> Result<(), String> {
    let has = |wanted: &dyn Fn(&LabelColumn) -> bool| columns.iter().any(wanted);
    let found = names.join(", ");
    if let Some(missing) = raters.iter().find(|rater| !names.contains(rater)) {
        return Err(format!(
            "no column `{missing}`, found {found}\nhint: --rater-columns names columns of this file"
        ));
    }
    if !has(&|c| *c == LabelColumn::Case) {
        return Err(format!(
            "no column `case`, found {found}\n\
             hint: the first line must name the columns: case, model and score, or case, model_a, \
             model_b and preference; `acem3 agree --help` shows more"
        ));
    }
    let values = columns
        .iter()
        .zip(names)
        .filter(|(c, _)| **c == LabelColumn::Value);
    let values: Vec<&str> = values.map(|(_, name)| name.as_str()).collect();
    if let [first, second, ..] = values[..] {
        return Err(format!(
            "the columns `{first}` and `{second}` both hold ratings of one rater, expected one\n\
             hint: --rater-columns {first},{second} if they are two raters'; else remove or rename one"
        ));
    }
    let rating = |c: &LabelColumn| {
        matches!(
            c,
            LabelColumn::Value
                | LabelColumn::PairScore(_)
                | LabelColumn::Of(_)
                | LabelColumn::By(_)
        )
    };
    if !has(&rating) {
        return Err(format!(
            "no column of ratings, found {found}\n\
             hint: name one `score` or `preference`, name them by criterion, or by rater with --rater-columns"
        ));
    }
    Ok(())
}

fn objects(path: &Path, options: &LabelOptions) -> Result<LabelFile> {
    let opened = regular_file::open(path)
        .with_context(|| format!("labels {} cannot be opened", path.display()))?;
    let mut file = LabelFile::default();
    for (line, text) in Lines::new(BufReader::new(opened)) {
        let text = text.map_err(|fault| at(path, line, &fault))?;
        let value: Value = serde_json::from_str(&text).map_err(|e| {
            let hint = "a label file of objects has one on each line (JSONL)";
            at(path, line, &format!("broken JSON: {e}\nhint: {hint}"))
        })?;
        let Value::Object(object) = value else {
            let fault = format!("{} stands here, expected an object", kind(&value));
            return Err(at(path, line, &fault));
        };
        let found = if object.get("labels").is_some_and(Value::is_object) {
            of_case(line, object)
        } else {
            of_object(line, &object, options, &mut file.unused)
        };
        file.entries
            .extend(found.map_err(|fault| at(path, line, &fault))?);
    }
    Ok(file)
}

/// A flat object: fields are columns.
fn of_object(
    line: u64,
    object: &Map<String, Value>,
    options: &LabelOptions,
    unused: &mut BTreeSet<String>,
) -> Result<Vec<LabelEntry>, String> {
    let mut cells = RowCells::new();
    for (name, value) in object {
        let column = LabelColumn::named(name, &options.raters);
        let text = match value {
            _ if column == LabelColumn::Other => {
                unused.insert(name.clone());
                continue;
            }
            Value::Null => String::new(),
            Value::Number(number) if column != LabelColumn::Case => number.to_string(),
            other => id_text(other)
                .or_else(|| other.as_str().map(str::to_owned))
                .ok_or_else(|| {
                    format!("`{name}` is {}, expected a number or a text", kind(other))
                })?,
        };
        cells.push((column, name, text));
    }
    entries(line, &cells)
}

/// A case as `acem3 judge` reads it: `labels` with one score per response.
fn of_case(line: u64, mut object: Map<String, Value>) -> Result<Vec<LabelEntry>, String> {
    let labels = object.remove("labels").unwrap_or_default();
    let labels = parse_labels(labels)?;
    let text = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| object.get(*name).and_then(id_text))
    };
    let case = text(["case", "id"]).ok_or("the id of the case is missing")?;
    let rater = text(["rater", "annotator"]).unwrap_or_else(|| ONE_RATER.to_owned());
    let model = |value: &Value| match value {
        Value::Object(response) => response.get("model").and_then(id_text),
        other => id_text(other),
    };
    let named = ["models", "pair", "responses"]
        .iter()
        .filter_map(|name| object.get(*name)?.as_array())
        .find_map(|list| list.iter().map(model).collect::<Option<Vec<String>>>());
    let models = named.ok_or(
        "labels without the models they are about\n\
         hint: add \"models\": [\"a\", \"b\"], in the order of the scores",
    )?;
    record_labels::spread(line, &case, &rater, (&models, &labels))
}

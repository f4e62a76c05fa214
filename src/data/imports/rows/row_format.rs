//! File formats of tables: which one a file has, and its rows.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use flate2::bufread::MultiGzDecoder;
use serde_json::{Map, Value};

use super::isolated_table::{self, BinaryTable};
use super::nested_array::{ObjectFields, list_fields, seek_array};
use super::table_row::{TableRow, TableRows};
use crate::data::cases::case::case_id::json_type;
use crate::data::cases::formats::csv_rows::CsvSheet;
use crate::data::cases::formats::encoding::UTF8_HINT;
use crate::data::cases::formats::json_array::Elements;
use crate::data::cases::formats::lines::Lines;
use crate::data::cases::formats::python_json;
use crate::support::files::regular_file;

/// The file format of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// Separated by commas, semicolons or tabs.
    Csv,
    /// One object per line.
    JsonLines,
    /// One array of objects.
    JsonArray,
    /// An object with this field, an array of objects.
    NestedArray(Arc<str>),
    /// An Excel workbook or a Parquet file.
    Binary(BinaryTable),
}

/// The array of HELM's objects, which have several.
const HELM_ARRAY: &str = "request_states";
/// Fields of an object that is a row itself. Some programs write one object per line to a `.json`
/// file, which may have one line.
const ROW_FIELDS: [&str; 6] = ["id", "question", "question_id", "doc_id", "custom_id", "responses"];
/// Bytes at the start of a file that decide its format.
const HEAD_BYTES: u64 = 1 << 16;

/// Detects the format from the extension and the first bytes; `None` if it is none of a table.
pub(crate) fn detect_format(path: &Path) -> Result<Option<RowFormat>> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    let unreadable = || format!("{} cannot be read", path.display());
    let mut head = Vec::new();
    let file = regular_file::open(path).with_context(unreadable)?;
    file.take(HEAD_BYTES).read_to_end(&mut head).with_context(unreadable)?;
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&head).trim_ascii_start();
    Ok(match extension.as_deref() {
        _ if head.starts_with(b"PAR1") => Some(RowFormat::Binary(BinaryTable::Parquet)),
        Some("xlsx") => Some(RowFormat::Binary(BinaryTable::Workbook)),
        Some("csv" | "tsv") => Some(RowFormat::Csv),
        Some("jsonl" | "ndjson" | "json") if text.starts_with(b"[") => Some(RowFormat::JsonArray),
        Some("jsonl" | "ndjson") => Some(RowFormat::JsonLines),
        Some("json") if text.starts_with(b"{") => Some(find_nested_array(path)?),
        _ => None,
    })
}

/// Returns the array of an object in a `.json` file: that of HELM, or the only array of objects. If
/// there is none, the file has one object per line.
fn find_nested_array(path: &Path) -> Result<RowFormat> {
    let Some(fields) = object_fields(path)? else {
        return Ok(RowFormat::JsonLines);
    };
    let is_row = fields.names.iter().any(|name| ROW_FIELDS.contains(&name.as_str()));
    let array = match fields.arrays.as_slice() {
        arrays if arrays.iter().any(|name| name == HELM_ARRAY) => HELM_ARRAY,
        [only] if !is_row => only,
        _ => return Ok(RowFormat::JsonLines),
    };
    Ok(RowFormat::NestedArray(array.into()))
}

/// Lists the fields of a file that is one JSON object; `None` for any other file.
pub(crate) fn object_fields(path: &Path) -> Result<Option<ObjectFields>> {
    let mut reader = BufReader::new(regular_file::open(path)?);
    Ok(list_fields(&mut reader)?)
}

/// Opens the rows of a table.
pub(crate) fn open_rows(path: &Path, format: &RowFormat) -> Result<TableRows> {
    let unreadable = || format!("{} cannot be opened", path.display());
    let open = || regular_file::open(path).map(BufReader::new).with_context(unreadable);
    Ok(match format {
        RowFormat::Csv => open_csv(path)?,
        RowFormat::JsonLines => Box::new(
            Lines::new(open()?)
                .map(|(line, text)| (line, text.and_then(|text| parse_object(&text)))),
        ),
        RowFormat::JsonArray => open_elements(open()?),
        RowFormat::NestedArray(name) => {
            let mut reader = open()?;
            if !seek_array(&mut reader, name).with_context(unreadable)? {
                bail!("{}: no array `{name}`", path.display());
            }
            open_elements(reader)
        }
        RowFormat::Binary(format) => isolated_table::open(path, *format)?,
    })
}

/// Opens the rows of a compressed JSONL file.
pub(crate) fn open_gzip_lines(path: &Path) -> Result<TableRows> {
    let file =
        regular_file::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let lines = Lines::new(BufReader::new(MultiGzDecoder::new(BufReader::new(file))));
    Ok(Box::new(lines.map(|(line, text)| (line, text.and_then(|text| parse_object(&text))))))
}

fn open_elements(reader: BufReader<std::fs::File>) -> TableRows {
    let elements = Elements::new(reader);
    Box::new(elements.map(|(line, element)| {
        let row = element.and_then(|bytes| parse_object(&String::from_utf8_lossy(&bytes)));
        (line, row)
    }))
}

fn parse_object(text: &str) -> Result<TableRow, String> {
    let value = python_json::parse(text)
        .map_err(|e| format!("malformed JSON: {}", python_json::error_reason(&e)))?;
    match value {
        Value::Object(fields) => Ok(TableRow { fields, bytes: Vec::new() }),
        other => Err(format!("the row is {}, expected an object", json_type(&other))),
    }
}

fn open_csv(path: &Path) -> Result<TableRows> {
    let CsvSheet { names, rows, delimiter } = CsvSheet::open(path)?;
    Ok(Box::new(rows.map(move |(line, row)| {
        let row = row.and_then(|row| {
            if row.len() != names.len() {
                return Err(format!(
                    "the row has {} columns, expected {}\n\
                     hint: quote texts that contain `{delimiter}` or quotes, and double the quotes inside",
                    row.len(),
                    names.len()
                ));
            }
            let mut fields = Map::new();
            for (name, cell) in names.iter().zip(row.iter()).filter(|(name, _)| !name.is_empty()) {
                let text = str::from_utf8(cell)
                    .map_err(|_| format!("column `{name}` is not UTF-8{UTF8_HINT}"))?;
                fields.insert(name.clone(), text.into());
            }
            Ok(TableRow { fields, bytes: Vec::new() })
        });
        (line, row)
    })))
}

/// Returns the first line of a text file, cut to 200 characters, for messages.
pub(crate) fn first_line(path: &Path) -> Option<String> {
    let mut line = Vec::new();
    let file = regular_file::open(path).ok()?;
    BufReader::new(file.take(HEAD_BYTES)).read_until(b'\n', &mut line).ok()?;
    let text = str::from_utf8(&line).map_or_else(
        // The head may end within a character.
        |e| str::from_utf8(line.get(..e.valid_up_to()).unwrap_or_default()).ok(),
        Some,
    )?;
    let text = text.trim();
    if text.contains('\0') {
        return None;
    }
    let cut: String = text.chars().take(200).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    (!cut.is_empty()).then(|| cut + more)
}

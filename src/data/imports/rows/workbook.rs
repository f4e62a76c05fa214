//! Rows of the first sheet of an Excel workbook (`.xlsx`).

use std::collections::BTreeMap;
use std::path::Path;

use ::calamine::{DataRef, Reader as _, Xlsx, open_workbook};
use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use super::table_row::{NumberedTableRow, TableRow};

/// Maximum size of the texts of a sheet in bytes. A small file can hold a large sheet.
const MAX_SHEET_BYTES: usize = 256 << 20;
/// Maximum number of columns.
const MAX_COLUMNS: usize = 1024;

/// Reads the first sheet into memory. The first row has the column names.
pub(super) fn read(path: &Path) -> Result<Vec<NumberedTableRow>> {
    let context = || format!("{} is not a readable .xlsx workbook", path.display());
    let mut workbook: Xlsx<_> = open_workbook(path).with_context(context)?;
    let sheet = workbook.sheet_names().first().cloned().with_context(context)?;
    let mut cells = workbook.worksheet_cells_reader(&sheet).with_context(context)?;
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut header_row = None;
    let mut rows: Vec<NumberedTableRow> = Vec::new();
    let mut total = 0;
    while let Some(cell) = cells.next_cell().with_context(context)? {
        let (row, column) = cell.get_position();
        let value = to_json(cell.get_value());
        total += value.as_str().map_or(8, str::len);
        if total > MAX_SHEET_BYTES {
            bail!("{}: the sheet has more than {MAX_SHEET_BYTES} bytes", path.display());
        }
        if *header_row.get_or_insert(row) == row {
            let name = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            names.insert(column, name.trim().to_owned());
            if names.len() > MAX_COLUMNS {
                bail!("{}: the sheet has more than {MAX_COLUMNS} columns", path.display());
            }
            continue;
        }
        let number = u64::from(row) + 1;
        let Some(name) = names.get(&column).filter(|name| !name.is_empty()) else { continue };
        if value.is_null() {
            continue;
        }
        if rows.last().is_none_or(|(last, _)| *last != number) {
            let blank = names.values().filter(|name| !name.is_empty());
            let fields: Map<String, Value> =
                blank.map(|name| (name.clone(), Value::Null)).collect();
            rows.push((number, Ok(TableRow { fields, bytes: Vec::new() })));
        }
        if let Some((_, Ok(last))) = rows.last_mut() {
            last.fields.insert(name.clone(), value);
        }
    }
    Ok(rows)
}

fn to_json(value: &DataRef<'_>) -> Value {
    match value {
        DataRef::Int(n) => (*n).into(),
        // A spreadsheet stores each number as a float.
        DataRef::Float(n) if n.fract() == 0.0 && n.abs() < 9e15 => (*n as i64).into(),
        DataRef::Float(n) => (*n).into(),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            text.as_str().into()
        }
        DataRef::SharedString(text) => (*text).into(),
        DataRef::Bool(value) => (*value).into(),
        DataRef::DateTime(time) => time.as_f64().into(),
        DataRef::Error(_) | DataRef::Empty => Value::Null,
    }
}

//! Rows of any Parquet file as JSON objects. Bytes stay bytes; the fields of a struct are named
//! `struct.field`.

use std::path::Path;
use std::sync::Arc;

use ::parquet::file::reader::SerializedFileReader;
use ::parquet::record::reader::RowIter;
use ::parquet::record::{Field, Row};
use anyhow::{Context as _, Result, anyhow};
use serde_json::{Map, Value};

use super::table_row::{NumberedTableRow, TableRow, TableRows};
use crate::data::cases::formats::panic_guard::catch_panic;
use crate::support::files::regular_file;

/// Rows per read, to limit the images in memory.
const BATCH_ROWS: usize = 16;

/// Opens a Parquet file in this process. An error ends the stream.
pub(super) fn open(path: &Path) -> Result<TableRows> {
    let opened =
        regular_file::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let rows = catch_panic(|| {
        let reader = SerializedFileReader::new(opened)?;
        Ok(RowIter::from_file_into(Box::new(reader)).with_batch_size(BATCH_ROWS))
    });
    let mut rows = rows
        .map_err(|reason| anyhow!("{} is not a readable Parquet file: {reason}", path.display()))?;
    let mut number = 0;
    let mut has_ended = false;
    Ok(Box::new(std::iter::from_fn(move || -> Option<NumberedTableRow> {
        if has_ended {
            return None;
        }
        number += 1;
        match catch_panic(|| rows.next().transpose()) {
            Ok(row) => Some((number, Ok(to_table_row(&row?)))),
            Err(reason) => {
                has_ended = true;
                Some((number, Err(format!("the table cannot be read any further: {reason}"))))
            }
        }
    })))
}

fn to_table_row(row: &Row) -> TableRow {
    let mut table_row = TableRow::default();
    for (name, field) in row.get_column_iter() {
        add_field(&mut table_row, name, field);
    }
    table_row
}

fn add_field(row: &mut TableRow, name: &str, field: &Field) {
    match field {
        Field::Bytes(bytes) => match bytes.as_utf8() {
            Ok(text) if !text.contains('\0') => {
                row.fields.insert(name.to_owned(), text.into());
            }
            _ => row.bytes.push((name.to_owned(), Arc::from(bytes.data()))),
        },
        Field::Group(group) => {
            for (inner, field) in group.get_column_iter() {
                add_field(row, &format!("{name}.{inner}"), field);
            }
        }
        // An image, as data sets with several images per row have it.
        Field::ListInternal(list) if matches!(list.elements(), [one] if contains_bytes(one)) => {
            list.elements().iter().for_each(|one| add_field(row, name, one));
        }
        other => {
            row.fields.insert(name.to_owned(), to_json(other));
        }
    }
}

fn contains_bytes(field: &Field) -> bool {
    match field {
        Field::Bytes(_) => true,
        Field::Group(group) => group.get_column_iter().any(|(_, field)| contains_bytes(field)),
        Field::ListInternal(list) => list.elements().iter().any(contains_bytes),
        _ => false,
    }
}

fn to_json(field: &Field) -> Value {
    match field {
        Field::Bool(value) => (*value).into(),
        Field::Byte(n) => (*n).into(),
        Field::Short(n) => (*n).into(),
        Field::Int(n) | Field::Date(n) | Field::TimeMillis(n) => (*n).into(),
        Field::Long(n)
        | Field::TimeMicros(n)
        | Field::TimestampMillis(n)
        | Field::TimestampMicros(n) => (*n).into(),
        Field::UByte(n) => (*n).into(),
        Field::UShort(n) => (*n).into(),
        Field::UInt(n) => (*n).into(),
        Field::ULong(n) => (*n).into(),
        Field::Float16(n) => f32::from(*n).into(),
        Field::Float(n) => (*n).into(),
        Field::Double(n) => (*n).into(),
        Field::Str(text) => text.as_str().into(),
        Field::Group(group) => {
            let fields = group.get_column_iter();
            Value::Object(fields.map(|(name, f)| (name.clone(), to_json(f))).collect::<Map<_, _>>())
        }
        Field::ListInternal(list) => list.elements().iter().map(to_json).collect(),
        Field::MapInternal(map) => {
            let text = |key: &Field| match key {
                Field::Str(text) => text.clone(),
                other => other.to_string(),
            };
            let entries = map.entries().iter().map(|(key, value)| (text(key), to_json(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        // Bytes in lists of several elements and decimals are no text of a case.
        Field::Null | Field::Decimal(_) | Field::Bytes(_) => Value::Null,
    }
}

//! Parquet output of the verdict table.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::analysis::report::verdicts::verdict_table::{CellValue, ColumnType, VerdictTable};

/// Maximum number of rows in a row group.
const ROWS_PER_GROUP: usize = 1 << 16;

/// Converts the table to a Parquet file; all columns are optional.
///
/// # Errors
///
/// The Parquet writer fails.
pub fn to_parquet(table: &VerdictTable) -> Result<Vec<u8>> {
    write_file(table).context("could not write the Parquet file")
}

fn write_file(table: &VerdictTable) -> parquet::errors::Result<Vec<u8>> {
    let mut fields = Vec::new();
    for (name, column_type) in &table.columns {
        let (physical, converted) = match column_type {
            ColumnType::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            ColumnType::Number => (Physical::DOUBLE, ConvertedType::NONE),
            ColumnType::Integer => (Physical::INT64, ConvertedType::NONE),
            ColumnType::Boolean => (Physical::BOOLEAN, ConvertedType::NONE),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_converted_type(converted);
        fields.push(Arc::new(field.build()?));
    }
    let schema = Type::group_type_builder("verdicts").with_fields(fields);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(
        &mut bytes,
        Arc::new(schema.build()?),
        Arc::new(properties.build()),
    )?;
    for group in table.rows.chunks(ROWS_PER_GROUP) {
        let mut writer = file.next_row_group()?;
        let mut index = 0;
        while let Some(mut column) = writer.next_column()? {
            let cells = group.iter().map(|row| row.get(index).and_then(Option::as_ref));
            write_column(column.untyped(), &cells.collect::<Vec<_>>())?;
            column.close()?;
            index += 1;
        }
        writer.close()?;
    }
    file.close()?;
    Ok(bytes)
}

/// Writes a column: the present values and their definition levels.
fn write_column(
    writer: &mut ColumnWriter<'_>,
    cells: &[Option<&CellValue>],
) -> parquet::errors::Result<()> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let present = cells.iter().flatten();
    match writer {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            let text = |cell: &&CellValue| match cell {
                CellValue::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            };
            writer.write_batch(
                &present.filter_map(text).collect::<Vec<_>>(),
                Some(&levels),
                None,
            )?
        }
        ColumnWriter::DoubleColumnWriter(writer) => {
            let number = |cell: &&CellValue| match cell {
                CellValue::Number(value) => Some(*value),
                _ => None,
            };
            writer.write_batch(
                &present.filter_map(number).collect::<Vec<_>>(),
                Some(&levels),
                None,
            )?
        }
        ColumnWriter::Int64ColumnWriter(writer) => {
            let integer = |cell: &&CellValue| match cell {
                CellValue::Integer(value) => Some(*value),
                _ => None,
            };
            writer.write_batch(
                &present.filter_map(integer).collect::<Vec<_>>(),
                Some(&levels),
                None,
            )?
        }
        ColumnWriter::BoolColumnWriter(writer) => {
            let boolean = |cell: &&CellValue| match cell {
                CellValue::Boolean(value) => Some(*value),
                _ => None,
            };
            writer.write_batch(
                &present.filter_map(boolean).collect::<Vec<_>>(),
                Some(&levels),
                None,
            )?
        }
        _ => 0,
    };
    Ok(())
}

//! The columns of a row group of a Parquet file.

use std::fs::File;

use ::parquet::basic::Type;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, ByteArrayType};
use ::parquet::errors;
use ::parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use anyhow::{Result, bail};

/// Cells of image bytes, image path, question and answer of one row; `None` for null.
pub(super) type VqaCells = [Option<ByteArray>; 4];

/// Columns of image bytes, image path, question and answer; `None` for a missing column.
pub(super) struct VqaColumns([Option<ParquetColumn>; 4]);

impl VqaColumns {
    /// Opens the columns of a row group by their indices.
    pub(super) fn open(
        group: &dyn RowGroupReader,
        indices: [Option<usize>; 4],
    ) -> errors::Result<Self> {
        let mut columns = [const { None }; 4];
        for (column, index) in columns.iter_mut().zip(indices) {
            let Some(index) = index else { continue };
            let level = group.metadata().column(index).column_descr().max_def_level();
            if let ColumnReader::ByteArrayColumnReader(reader) = group.get_column_reader(index)? {
                *column = Some(ParquetColumn { reader, level });
            }
        }
        Ok(Self(columns))
    }

    /// Skips the next rows.
    pub(super) fn skip_rows(&mut self, rows: usize) -> errors::Result<()> {
        for column in self.0.iter_mut().flatten().filter(|_| rows > 0) {
            column.reader.skip_records(rows)?;
        }
        Ok(())
    }

    /// Reads up to this number of rows; none at the end of the row group.
    pub(super) fn read_rows(&mut self, rows: usize) -> Result<Vec<VqaCells>, String> {
        let columns = self.0.iter_mut();
        let mut cells =
            columns.map(|column| column.as_mut().map(|c| c.read_cells(rows)).transpose());
        let mut next = || cells.next().unwrap_or(Ok(None));
        let columns = [next()?, next()?, next()?, next()?];
        let rows = columns[2].as_ref().map_or(0, Vec::len);
        if columns.iter().flatten().any(|cells| cells.len() != rows) {
            return Err("the columns have different lengths".into());
        }
        let mut columns = columns.map(|cells| cells.unwrap_or_default().into_iter());
        Ok((0..rows).map(|_| columns.each_mut().map(|cells| cells.next().flatten())).collect())
    }
}

/// A column of the open row group.
struct ParquetColumn {
    reader: ColumnReaderImpl<ByteArrayType>,
    /// Definition level of a value that is not null.
    level: i16,
}

impl ParquetColumn {
    /// Reads the next values; `None` for null.
    fn read_cells(&mut self, rows: usize) -> Result<Vec<Option<ByteArray>>, String> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (records, ..) = self
            .reader
            .read_records(rows, Some(&mut levels), None, &mut values)
            .map_err(|e| e.to_string())?;
        let mut values = values.into_iter();
        if self.level == 0 {
            return Ok(values.map(Some).collect());
        }
        let cell = |level| {
            if level == self.level { values.next() } else { None }
        };
        Ok(levels.into_iter().take(records).map(cell).collect())
    }
}

/// Finds the indices of image bytes, image path, question and answer.
pub(super) fn find_columns(file: &SerializedFileReader<File>) -> Result<[Option<usize>; 4]> {
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<_> = schema.columns().iter().map(|c| c.path().string()).collect();
    let find = |paths: &[&str]| -> Result<Option<usize>> {
        let found = schema.columns().iter().enumerate().find(|(_, c)| {
            let path = c.path().string();
            paths.contains(&path.as_str())
        });
        let Some((index, column)) = found else {
            return Ok(None);
        };
        if column.physical_type() != Type::BYTE_ARRAY || column.max_rep_level() != 0 {
            bail!("column {}: expected text or bytes", column.path().string());
        }
        Ok(Some(index))
    };
    let found = [
        find(&["image.bytes", "image"])?,
        find(&["image.path"])?,
        find(&["question"])?,
        find(&["answer"])?,
    ];
    if found[0].is_none() || found[2].is_none() {
        bail!(
            "no columns image.bytes and question, found {}\nhint: expected the layout \
             image {{bytes, path}}, question, answer",
            names.join(", ")
        );
    }
    Ok(found)
}

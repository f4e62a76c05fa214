//! Parquet files with the columns `image {bytes, path}`, `question` and `answer`, read a few rows
//! at a time.
//!
//! The files are untrusted. An error or panic of the Parquet library ends its row group with a
//! message.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::data_type::ByteArray;
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use acem3_vision::{DecodeError, ImageLimits};
use anyhow::{Context as _, Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::data::cases::case::text_limits::MAX_TEXT_BYTES;
use crate::data::cases::formats::panic_guard::catch_panic;
use crate::data::cases::formats::parquet::file_columns::{VqaCells, VqaColumns, find_columns};
use crate::data::cases::formats::parquet::lost_rows::LostRows;
use crate::data::cases::formats::parquet::vqa_row::VqaRow;
use crate::support::files::regular_file;

/// Rows per read, to limit the images in memory.
pub(super) const BATCH_ROWS: usize = 16;

/// Where and how reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowStart {
    /// First row, from 0.
    pub(crate) row: u64,
    /// Rows per read, at least 1.
    pub(crate) batch_rows: usize,
}

impl Default for RowStart {
    fn default() -> Self {
        Self { row: 0, batch_rows: BATCH_ROWS }
    }
}

/// The rows of one file, read in this process.
pub(crate) struct FileRows {
    file: SerializedFileReader<File>,
    batch_rows: usize,
    /// Column indices of image bytes, image path, question and answer.
    column_indices: [Option<usize>; 4],
    /// Index of the next row group.
    group_index: usize,
    columns: Option<VqaColumns>,
    batch: VecDeque<VqaCells>,
    /// Index of the next row.
    row: u64,
    /// Rows of the next row group before the first one to read.
    skipped: u64,
    lost: LostRows,
    /// Row number at which the open row group ends.
    group_end: u64,
}

impl FileRows {
    /// Opens a file at a row and finds its columns.
    ///
    /// # Errors
    /// The file is not a Parquet file, or a column is missing.
    pub(crate) fn open(path: &Path, start: RowStart) -> Result<Self> {
        let name = || path.display().to_string();
        let opened =
            regular_file::open(path).with_context(|| format!("{} cannot be opened", name()))?;
        let file = catch_panic(|| SerializedFileReader::new(opened)).map_err(|e| {
            anyhow!(
                "{} is not a readable Parquet file: {e}\n\
                     hint: copy or download it again; a download may be an error page instead",
                name()
            )
        })?;
        let column_indices = find_columns(&file).with_context(name)?;
        let mut rows = Self {
            file,
            batch_rows: start.batch_rows.max(1),
            column_indices,
            group_index: 0,
            columns: None,
            batch: VecDeque::new(),
            row: 0,
            skipped: 0,
            lost: LostRows::default(),
            group_end: 0,
        };
        for size in rows.group_sizes() {
            let end = rows.group_end.saturating_add(size);
            if start.row < end {
                break;
            }
            rows.group_end = end;
            rows.group_index += 1;
        }
        rows.row = rows.group_end;
        rows.skipped = start.row.saturating_sub(rows.row);
        Ok(rows)
    }

    /// Returns the number of rows of each row group according to the metadata.
    pub(crate) fn group_sizes(&self) -> Vec<u64> {
        let groups = self.file.metadata().row_groups().iter();
        groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).collect()
    }

    /// Returns the number of rows according to the metadata.
    pub(crate) fn row_count(&self) -> u64 {
        self.group_sizes().iter().fold(0, |sum: u64, rows| sum.saturating_add(*rows))
    }

    /// Opens the columns of the next row group; false at the end of the file.
    fn open_next_group(&mut self) -> Result<bool, String> {
        let (file, group, indices) = (&self.file, self.group_index, self.column_indices);
        if group >= file.num_row_groups() {
            return Ok(false);
        }
        self.group_index += 1;
        self.row = self.group_end;
        let rows = file.metadata().row_groups().get(group).map_or(0, RowGroupMetaData::num_rows);
        self.group_end += u64::try_from(rows).unwrap_or(0);
        let skipped = std::mem::take(&mut self.skipped);
        let columns = catch_panic(|| {
            let mut columns = VqaColumns::open(&*file.get_row_group(group)?, indices)?;
            columns.skip_rows(usize::try_from(skipped).unwrap_or(usize::MAX))?;
            Ok(columns)
        });
        self.row += skipped;
        self.columns = Some(columns?);
        Ok(true)
    }

    /// Reads the next few rows; false at the end of the file.
    fn fill_batch(&mut self) -> Result<bool, String> {
        loop {
            if let Some(columns) = &mut self.columns {
                let rows = catch_panic(|| Ok(columns.read_rows(self.batch_rows)))??;
                if !rows.is_empty() {
                    self.batch.extend(rows);
                    return Ok(true);
                }
                self.columns = None;
                if self.row < self.group_end {
                    return Err("the file ends early".into());
                }
            }
            if !self.open_next_group()? {
                return Ok(false);
            }
        }
    }
}

impl Iterator for FileRows {
    /// The row index from 0, and the row or an error.
    type Item = (u64, Result<VqaRow, String>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((index, message)) = self.lost.next() {
            return Some((index, Err(message)));
        }
        if self.batch.is_empty() {
            match self.fill_batch() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(message) => {
                    self.columns = None;
                    self.lost = LostRows::new(self.row..self.group_end, &message);
                    self.row = self.group_end;
                    return self.next();
                }
            }
        }
        let index = self.row;
        self.row += 1;
        self.batch.pop_front().map(|cells| (index, to_row(&cells)))
    }
}

/// Copies the cells of a row. Cells that share bytes in the file are copied one row at a time.
fn to_row([image, path, question, answer]: &VqaCells) -> Result<VqaRow, String> {
    let image = image.as_ref().map(ByteArray::data).filter(|bytes| !bytes.is_empty());
    let max_bytes = ImageLimits::default().bytes;
    if let Some(bytes) = image.filter(|bytes| bytes.len() > max_bytes) {
        return Err(DecodeError::TooManyBytes { size: bytes.len(), limit: max_bytes }.to_string());
    }
    Ok(VqaRow {
        path: text_of_cell(path.as_ref(), "path")?,
        question: text_of_cell(question.as_ref(), "question")?.ok_or("the question is null")?,
        answer: text_of_cell(answer.as_ref(), "answer")?,
        image: image.map(Arc::from),
    })
}

fn text_of_cell(cell: Option<&ByteArray>, name: &str) -> Result<Option<String>, String> {
    let Some(bytes) = cell.map(ByteArray::data) else {
        return Ok(None);
    };
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "column `{name}` has a text of {} bytes, the limit is {MAX_TEXT_BYTES}",
            bytes.len()
        ));
    }
    let text = str::from_utf8(bytes).map_err(|_| format!("column `{name}` is not UTF-8"))?;
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ::parquet::data_type::ByteArrayType;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;
    use std::fs;

    const SCHEMA: &str = "message vqa {
        optional group image { optional binary bytes; optional binary path (UTF8); }
        optional binary question (UTF8);
        optional binary answer (UTF8);
    }";

    /// A cell of each column; `None` is null.
    pub(crate) type ParquetCells = [Option<&'static [u8]>; 4];

    /// Writes row groups in the hub's layout.
    pub(crate) fn write_parquet(path: &Path, groups: &[&[ParquetCells]]) {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer =
            SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
        for rows in groups {
            let mut group = writer.next_row_group().unwrap();
            let mut index = 0;
            while let Some(mut column) = group.next_column().unwrap() {
                let present = if index < 2 { 2 } else { 1 };
                let cells: Vec<_> = rows.iter().map(|row| row[index]).collect();
                let levels: Vec<i16> =
                    cells.iter().map(|c| if c.is_some() { present } else { present - 1 }).collect();
                let values: Vec<ByteArray> =
                    cells.into_iter().flatten().map(ByteArray::from).collect();
                let typed = column.typed::<ByteArrayType>();
                typed.write_batch(&values, Some(&levels), None).unwrap();
                column.close().unwrap();
                index += 1;
            }
            group.close().unwrap();
        }
        writer.close().unwrap();
    }

    fn read_all(path: &Path) -> Vec<(u64, Result<VqaRow, String>)> {
        FileRows::open(path, RowStart::default())
            .map(|rows| rows.take(100).collect())
            .unwrap_or_default()
    }

    fn write_sample(path: &Path) {
        let full: ParquetCells =
            [Some(b"\xFF\xD8jpeg"), Some(b"a.jpg"), Some(b"is it?"), Some(b"yes")];
        let blank: ParquetCells = [None, None, Some(b"why?"), None];
        let malformed: ParquetCells = [Some(b"x"), None, Some(b"\xFF\xFE"), None];
        let many = vec![full; 40];
        write_parquet(path, &[&many, &[blank, malformed, full]]);
    }

    #[test]
    fn rows_are_read_across_batches_and_row_groups() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        write_sample(&path);
        assert_eq!(FileRows::open(&path, RowStart::default()).unwrap().group_sizes(), [40, 3]);
        let rows = read_all(&path);
        assert_eq!(rows.iter().map(|(i, _)| *i).collect::<Vec<_>>(), (0..43).collect::<Vec<_>>());
        let first = rows[39].1.as_ref().unwrap();
        assert_eq!(first.image.as_deref(), Some(&b"\xFF\xD8jpeg"[..]));
        assert_eq!(first.path.as_deref(), Some("a.jpg"));
        assert_eq!(first.answer.as_deref(), Some("yes"));
        let blank = rows[40].1.as_ref().unwrap();
        assert_eq!((&blank.image, &blank.answer, blank.question.as_str()), (&None, &None, "why?"));
        assert!(rows[41].1.as_ref().unwrap_err().contains("UTF-8"));
        assert!(rows[42].1.is_ok());
    }

    #[test]
    fn missing_columns_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        fs::write(&path, "PAR1 but no more").unwrap();
        let error = FileRows::open(&path, RowStart::default()).err().unwrap().to_string();
        assert!(error.contains("not a readable Parquet file"), "{error}");
        assert!(FileRows::open(&dir.path().join("none.parquet"), RowStart::default()).is_err());
        let schema = "message other { required binary text (UTF8); }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let file = File::create(&path).unwrap();
        SerializedFileWriter::new(file, schema, Arc::default()).unwrap().close().unwrap();
        let error = format!("{:#}", FileRows::open(&path, RowStart::default()).err().unwrap());
        assert!(error.contains("found text") && error.contains("hint:"), "{error}");
    }

    /// Reading a damaged file ends and never returns more rows than the original file has.
    #[test]
    fn damaged_files_give_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        write_sample(&path);
        let bytes = fs::read(&path).unwrap();
        let damaged = dir.path().join("b.parquet");
        for end in (0..bytes.len()).step_by(7) {
            fs::write(&damaged, &bytes[..end]).unwrap();
            assert!(read_all(&damaged).is_empty(), "cut at {end}");
        }
        for offset in (0..bytes.len()).step_by(3) {
            let mut bytes = bytes.clone();
            bytes[offset] ^= 1 << (offset % 8);
            fs::write(&damaged, &bytes).unwrap();
            assert!(read_all(&damaged).len() <= 43, "byte {offset}");
        }
    }
}

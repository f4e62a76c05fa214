//! Parquet files with the columns `image {bytes, path}`, `question` and `answer`.

mod file_columns;
mod file_rows;
pub(crate) mod isolated_rows;
mod lost_rows;
mod vqa_row;

use std::path::Path;

use anyhow::Result;

use crate::support::process::isolated;
use file_rows::{FileRows, RowStart};
use isolated_rows::IsolatedRows;
pub(crate) use vqa_row::VqaRow;

#[cfg(test)]
pub(crate) use file_rows::tests;

/// The rows of one file.
pub(crate) enum VqaRows {
    /// Rows read by an isolated process.
    Isolated(Box<IsolatedRows>),
    /// Rows read in this process, if isolation is not enabled.
    File(Box<FileRows>),
}

impl VqaRows {
    /// Opens a file and finds its columns.
    ///
    /// # Errors
    /// The file is not a Parquet file, or a column is missing.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if isolated::is_enabled() {
            Ok(Self::Isolated(Box::new(IsolatedRows::open(path)?)))
        } else {
            Ok(Self::File(Box::new(FileRows::open(path, RowStart::default())?)))
        }
    }

    /// Returns the number of rows according to the metadata.
    pub(crate) fn row_count(&self) -> u64 {
        match self {
            Self::Isolated(rows) => rows.row_count(),
            Self::File(rows) => rows.row_count(),
        }
    }
}

impl Iterator for VqaRows {
    /// The row index from 0, and the row or an error.
    type Item = (u64, Result<VqaRow, String>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Isolated(rows) => rows.next(),
            Self::File(rows) => rows.next(),
        }
    }
}

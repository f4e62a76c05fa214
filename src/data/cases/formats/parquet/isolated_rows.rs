//! Reads the rows of a Parquet file in an isolated process.
//!
//! A small file can hold pages that decompress to gigabytes. If the process exceeds its limits, the
//! row group is lost and another process continues with the next one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use acem3_vision::ImageLimits;
use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::file_rows::FileRows;
use super::vqa_row::VqaRow;
use crate::support::process::isolated::{IsolatedProcess, ProcessFailure};
use crate::support::process::message::{self, Message};

/// Name of the task of the isolated processes.
pub(crate) const PARQUET_TASK: &str = "parquet";

/// Header of a request.
#[derive(Debug, Serialize, Deserialize)]
enum RowRequest {
    /// Open a file at a row group.
    Open { path: PathBuf, first_group: usize },
    /// Read the next row.
    Next,
}

/// Header of the answer to [`RowRequest::Open`]: the number of rows of each row group.
type OpenAnswer = Result<Vec<u64>, String>;

/// Header of the answer to [`RowRequest::Next`]; `None` at the end of the file. The body is the
/// image.
type NextAnswer = Option<(u64, Result<RowTexts, String>)>;

/// The texts of a row.
#[derive(Debug, Serialize, Deserialize)]
struct RowTexts {
    path: Option<String>,
    question: String,
    answer: Option<String>,
}

/// The rows of one file, read by another process.
pub(crate) struct IsolatedRows {
    path: PathBuf,
    process: IsolatedProcess,
    group_sizes: Vec<u64>,
    /// Index of the next row.
    row: u64,
    ended: bool,
}

impl IsolatedRows {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`FileRows::open`], and if the process cannot be started or exceeds its limits.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let (process, answer) = start(&path, 0)
            .map_err(|failure| anyhow!("{} cannot be read: {failure}", path.display()))?;
        let group_sizes = answer.map_err(anyhow::Error::msg)?;
        Ok(Self { path, process, group_sizes, row: 0, ended: false })
    }

    /// Returns the number of rows according to the metadata.
    pub(crate) fn row_count(&self) -> u64 {
        self.group_sizes.iter().fold(0, |sum, rows| sum.saturating_add(*rows))
    }

    /// Continues after the row group of the current row. Returns the first row of the group and the
    /// error.
    fn skip_group(&mut self, failure: &ProcessFailure) -> (u64, Result<VqaRow, String>) {
        let (mut group, mut end) = (0, 0_u64);
        while end <= self.row && group < self.group_sizes.len() {
            end = end.saturating_add(self.group_sizes.get(group).copied().unwrap_or(0));
            group += 1;
        }
        let first = self.row;
        let message = format!("rows {} to {end} cannot be read: {failure}", first + 1);
        self.row = end;
        self.ended = group >= self.group_sizes.len();
        if !self.ended {
            match start(&self.path, group) {
                Ok((process, Ok(_))) => self.process = process,
                Ok((_, Err(_))) | Err(_) => self.ended = true,
            }
        }
        (first, Err(message))
    }
}

impl Iterator for IsolatedRows {
    type Item = (u64, Result<VqaRow, String>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let max_bytes = ImageLimits::default().bytes as u64;
        let answer = match self.process.ask(&RowRequest::Next, &[], max_bytes) {
            Ok(answer) => answer,
            Err(failure) => return Some(self.skip_group(&failure)),
        };
        match answer.parse_header::<NextAnswer>() {
            Ok(Some((index, texts))) => {
                self.row = index + 1;
                let image = (!answer.body.is_empty()).then(|| answer.body.into());
                let row = texts.map(|RowTexts { path, question, answer }| VqaRow {
                    image,
                    path,
                    question,
                    answer,
                });
                Some((index, row))
            }
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(error) => Some(self.skip_group(&ProcessFailure::Crashed(error.to_string()))),
        }
    }
}

fn start(path: &Path, first_group: usize) -> Result<(IsolatedProcess, OpenAnswer), ProcessFailure> {
    let mut process = IsolatedProcess::start(PARQUET_TASK)?;
    let request = RowRequest::Open { path: path.to_owned(), first_group };
    let answer = process.ask(&request, &[], 0)?;
    let answer = answer.parse_header().map_err(|e| ProcessFailure::Crashed(e.to_string()))?;
    Ok((process, answer))
}

/// Returns a function that answers requests in an isolated process.
pub(crate) fn responder() -> impl FnMut(Message, &mut dyn Write) -> io::Result<()> {
    let mut rows: Option<FileRows> = None;
    move |request, mut output| match request.parse_header()? {
        RowRequest::Open { path, first_group } => {
            let opened = FileRows::open(&path, first_group);
            let answer: OpenAnswer = opened
                .map(|opened| rows.insert(opened).group_sizes())
                .map_err(|e| format!("{e:#}"));
            message::write(&mut output, &answer, &[])
        }
        RowRequest::Next => {
            let mut image = None;
            let next = rows.as_mut().and_then(Iterator::next);
            let answer: NextAnswer = next.map(|(index, row)| {
                let texts = row.map(|row| {
                    image = row.image;
                    RowTexts { path: row.path, question: row.question, answer: row.answer }
                });
                (index, texts)
            });
            message::write(&mut output, &answer, image.as_deref().unwrap_or_default())
        }
    }
}

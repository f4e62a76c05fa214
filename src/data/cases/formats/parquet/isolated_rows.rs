//! Reads the rows of a Parquet file in an isolated process.
//!
//! A small file can hold pages that decompress to gigabytes. If the process exceeds its limits,
//! another process reads the same rows one by one, so that only the rows that need too much are
//! lost. After a few of them, the rest of the row group is lost.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use acem3_vision::ImageLimits;
use anyhow::anyhow;
use serde::{Deserialize, Serialize};

use super::file_rows::{BATCH_ROWS, FileRows, RowStart};
use super::lost_rows::LostRows;
use super::vqa_row::VqaRow;
use crate::support::process::isolated::{IsolatedProcess, ProcessFailure};
use crate::support::process::message::{self, Message};

/// Name of the task of the isolated processes.
pub(crate) const PARQUET_TASK: &str = "parquet";

/// Header of a request.
#[derive(Debug, Serialize, Deserialize)]
enum RowRequest {
    /// Open a file at a row.
    Open { path: PathBuf, start: RowStart },
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

/// Number of rows of a row group that may fail on their own before its rest is lost.
const MAX_FAILED_ROWS: u32 = 3;

/// The rows of one file, read by another process.
pub(crate) struct IsolatedRows {
    path: PathBuf,
    process: IsolatedProcess,
    group_sizes: Vec<u64>,
    /// The next row, and the number of rows per read.
    next: RowStart,
    /// Index after the last row of the current row group.
    group_end: u64,
    /// Number of rows of the current row group that failed on their own.
    failed_rows: u32,
    lost: VecDeque<LostRows>,
    ended: bool,
}

impl IsolatedRows {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`FileRows::open`], and if the process cannot be started or exceeds its limits.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let next = RowStart::default();
        let (process, answer) = start(&path, next)
            .map_err(|failure| anyhow!("{} cannot be read: {failure}", path.display()))?;
        let group_sizes = answer.map_err(anyhow::Error::msg)?;
        Ok(Self {
            path,
            process,
            group_sizes,
            next,
            group_end: 0,
            failed_rows: 0,
            lost: VecDeque::new(),
            ended: false,
        })
    }

    /// Returns the number of rows according to the metadata.
    pub(crate) fn row_count(&self) -> u64 {
        self.group_sizes.iter().fold(0, |sum, rows| sum.saturating_add(*rows))
    }

    /// Finds the row group of the next row.
    fn enter_group(&mut self) {
        if self.next.row < self.group_end {
            return;
        }
        self.failed_rows = 0;
        let mut end = 0_u64;
        for size in &self.group_sizes {
            end = end.saturating_add(*size);
            if end > self.next.row {
                break;
            }
        }
        self.group_end = end;
    }

    /// Continues after a failure of the process, which read the next row or the rows after it.
    fn recover(&mut self, failure: &ProcessFailure) {
        self.enter_group();
        let can_retry = matches!(failure, ProcessFailure::Memory | ProcessFailure::Crashed(_));
        if !can_retry || self.failed_rows >= MAX_FAILED_ROWS {
            self.lose(self.group_end, failure);
            self.next.batch_rows = BATCH_ROWS;
        } else if self.next.batch_rows > 1 {
            self.next.batch_rows = 1;
        } else {
            self.lose(self.next.row + 1, failure);
            self.failed_rows += 1;
        }
        if self.next.row >= self.row_count() {
            self.ended = true;
            return;
        }
        match start(&self.path, self.next) {
            Ok((process, Ok(_))) => self.process = process,
            Ok((_, Err(message))) => self.end_early(&message),
            Err(failure) => self.end_early(&failure.to_string()),
        }
    }

    /// Gives up the rows before this index.
    fn lose(&mut self, end: u64, failure: &ProcessFailure) {
        self.lost.push_back(LostRows::new(self.next.row..end, &failure.to_string()));
        self.next.row = end.max(self.next.row + 1);
    }

    /// Gives up all other rows of the file, because no process can open it again.
    fn end_early(&mut self, reason: &str) {
        self.lost.push_back(LostRows::new(self.next.row..self.row_count(), reason));
        self.ended = true;
    }

    /// Returns the next row that was given up.
    fn next_lost(&mut self) -> Option<(u64, String)> {
        while let Some(lost) = self.lost.front_mut() {
            if let Some(row) = lost.next() {
                return Some(row);
            }
            self.lost.pop_front();
        }
        None
    }
}

impl Iterator for IsolatedRows {
    type Item = (u64, Result<VqaRow, String>);

    fn next(&mut self) -> Option<Self::Item> {
        let max_bytes = ImageLimits::default().bytes as u64;
        loop {
            if let Some((index, message)) = self.next_lost() {
                return Some((index, Err(message)));
            }
            if self.ended {
                return None;
            }
            let answer = self.process.ask(&RowRequest::Next, &[], max_bytes).and_then(|answer| {
                let header = answer.parse_header::<NextAnswer>();
                let header = header.map_err(|e| ProcessFailure::Crashed(e.to_string()))?;
                Ok((header, answer.body))
            });
            match answer {
                Ok((Some((index, texts)), body)) => {
                    self.next.row = index + 1;
                    let image = (!body.is_empty()).then(|| body.into());
                    let row = texts.map(|RowTexts { path, question, answer }| VqaRow {
                        image,
                        path,
                        question,
                        answer,
                    });
                    return Some((index, row));
                }
                Ok((None, _)) => self.ended = true,
                Err(failure) => self.recover(&failure),
            }
        }
    }
}

fn start(path: &Path, start: RowStart) -> Result<(IsolatedProcess, OpenAnswer), ProcessFailure> {
    let mut process = IsolatedProcess::start(PARQUET_TASK)?;
    let request = RowRequest::Open { path: path.to_owned(), start };
    let answer = process.ask(&request, &[], 0)?;
    let answer = answer.parse_header().map_err(|e| ProcessFailure::Crashed(e.to_string()))?;
    Ok((process, answer))
}

/// Returns a function that answers requests in an isolated process.
pub(crate) fn responder() -> impl FnMut(Message, &mut dyn Write) -> io::Result<()> {
    let mut rows: Option<FileRows> = None;
    move |request, mut output| match request.parse_header()? {
        RowRequest::Open { path, start } => {
            let opened = FileRows::open(&path, start);
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

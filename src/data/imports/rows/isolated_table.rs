//! Reads workbooks and Parquet tables in an isolated process, because a small file can hold
//! gigabytes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_vision::ImageLimits;
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::table_row::{NumberedTableRow, TableRow, TableRows};
use super::{parquet_table, workbook};
use crate::data::cases::formats::panic_guard::catch_panic;
use crate::support::process::isolated::{self, IsolatedProcess, ProcessFailure};
use crate::support::process::message::{self, Message};

/// Name of the task of the isolated processes.
pub(crate) const TABLE_TASK: &str = "table";

/// Binary formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BinaryTable {
    /// An Excel workbook.
    Workbook,
    /// A Parquet file.
    Parquet,
}

/// Header of a request.
#[derive(Debug, Serialize, Deserialize)]
enum TableRequest {
    /// Open a file.
    Open { path: PathBuf, format: BinaryTable },
    /// Read the next row.
    Next,
}

/// Header of the answer to [`TableRequest::Open`].
type TableOpened = Result<(), String>;

/// Header of the answer to [`TableRequest::Next`]; `None` at the end. The body is the bytes of all
/// fields with bytes.
type NextTableRow = Option<(u64, Result<RowHeader, String>)>;

/// A row without its bytes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RowHeader {
    fields: Map<String, Value>,
    /// Names and lengths of the fields with bytes.
    bytes: Vec<(String, usize)>,
}

/// Opens a table.
pub(crate) fn open(path: &Path, format: BinaryTable) -> Result<TableRows> {
    if !isolated::is_enabled() {
        return open_here(path, format);
    }
    let path = std::path::absolute(path)?;
    let failed = |failure: ProcessFailure| anyhow!("{} cannot be read: {failure}", path.display());
    let mut process = IsolatedProcess::start(TABLE_TASK).map_err(failed)?;
    let request = TableRequest::Open { path: path.clone(), format };
    let answer = process.ask(&request, &[], 0).map_err(failed)?;
    answer.parse_header::<TableOpened>()?.map_err(anyhow::Error::msg)?;
    Ok(Box::new(TableProcess { process, number: 0, has_ended: false }))
}

fn open_here(path: &Path, format: BinaryTable) -> Result<TableRows> {
    match format {
        BinaryTable::Workbook => {
            let rows = catch_panic(|| Ok(workbook::read(path)));
            let rows = rows.map_err(|reason| anyhow!("{}: {reason}", path.display()))??;
            Ok(Box::new(rows.into_iter()))
        }
        BinaryTable::Parquet => parquet_table::open(path),
    }
}

/// The rows of one file, read by another process.
struct TableProcess {
    process: IsolatedProcess,
    /// Number of the last row.
    number: u64,
    has_ended: bool,
}

impl TableProcess {
    fn read_row(&mut self) -> Result<Option<NumberedTableRow>, String> {
        let max_bytes = 2 * ImageLimits::default().bytes as u64;
        let answer = self.process.ask(&TableRequest::Next, &[], max_bytes);
        let answer = answer.map_err(|failure| failure.to_string())?;
        let header = answer.parse_header::<NextTableRow>().map_err(|e| e.to_string())?;
        let Some((number, row)) = header else {
            return Ok(None);
        };
        let row = row.map(|RowHeader { fields, bytes: lengths }| {
            let mut rest = answer.body.as_slice();
            let mut bytes: Vec<(String, Arc<[u8]>)> = Vec::new();
            for (name, length) in lengths {
                let (part, others) = rest.split_at_checked(length).unwrap_or((rest, &[]));
                bytes.push((name, part.into()));
                rest = others;
            }
            TableRow { fields, bytes }
        });
        Ok(Some((number, row)))
    }
}

impl Iterator for TableProcess {
    type Item = NumberedTableRow;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        match self.read_row() {
            Ok(Some((number, row))) => {
                self.number = number;
                Some((number, row))
            }
            Ok(None) => {
                self.has_ended = true;
                None
            }
            Err(reason) => {
                self.has_ended = true;
                let message = format!("the table cannot be read any further: {reason}");
                Some((self.number + 1, Err(message)))
            }
        }
    }
}

/// Returns a function that answers requests in an isolated process.
pub(crate) fn responder() -> impl FnMut(Message, &mut dyn Write) -> io::Result<()> {
    let mut rows: Option<TableRows> = None;
    move |request, mut output| match request.parse_header()? {
        TableRequest::Open { path, format } => {
            let answer: TableOpened = open_here(&path, format)
                .map(|opened| rows = Some(opened))
                .map_err(|e| format!("{e:#}"));
            message::write(&mut output, &answer, &[])
        }
        TableRequest::Next => {
            let mut body = Vec::new();
            let next = rows.as_mut().and_then(Iterator::next);
            let answer: NextTableRow = next.map(|(number, row)| {
                let header = row.map(|row| {
                    let lengths = row.bytes.iter().map(|(name, bytes)| (name.clone(), bytes.len()));
                    let header = RowHeader { bytes: lengths.collect(), fields: row.fields };
                    row.bytes.iter().for_each(|(_, bytes)| body.extend_from_slice(bytes));
                    header
                });
                (number, header)
            });
            message::write(&mut output, &answer, &body)
        }
    }
}

//! Rows of hand-written CSV files, with blank lines, line breaks in quotes, and unclosed quotes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use ::csv::{ByteRecord, Reader, ReaderBuilder, Terminator};
use anyhow::{Context as _, bail};

use super::encoding::is_utf16;
use super::lines::MAX_LINE_BYTES;
use super::row_limit::{RowBudget, RowLimitedReader};
use crate::support::files::regular_file;

/// A CSV file with a header.
pub(crate) struct CsvSheet {
    /// Column names.
    pub(crate) names: Vec<String>,
    /// The rows.
    pub(crate) rows: CsvRows,
    /// Delimiter of the columns.
    pub(crate) delimiter: char,
}

impl CsvSheet {
    /// Opens a table and reads its header.
    ///
    /// # Errors
    /// The file cannot be opened or read, is not UTF-8 with line feeds, or has two columns with the
    /// same name.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("table {} cannot be opened", path.display());
        let file = regular_file::open(path).with_context(context)?;
        let head = read_head(path).with_context(context)?;
        check_encoding(&head, path)?;
        let delimiter = detect_delimiter(&head);
        let budget = RowBudget::new(MAX_LINE_BYTES);
        let mut reader = table_reader(BufReader::new(file), delimiter, true, &budget);
        let context = || format!("the header of {} cannot be read", path.display());
        let header = reader.byte_headers().with_context(context)?;
        let name = |field: &[u8]| {
            let field = field.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(field);
            String::from_utf8_lossy(field).trim().to_owned()
        };
        let names: Vec<String> = header.iter().map(name).collect();
        if names.iter().any(|name| name.as_bytes() == SENTINEL_LINE.trim_ascii()) {
            bail!(
                "{}: the table is empty\nhint: the first line must contain the column names",
                path.display()
            );
        }
        check_names(&names, path)?;
        Ok(Self {
            names,
            rows: CsvRows::new(reader, path, delimiter, budget),
            delimiter: char::from(delimiter),
        })
    }
}

/// Reads the first 64 KiB of a file, which include the header.
fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path)?.take(1 << 16).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Rejects UTF-16 and lone carriage returns, which would parse as one long header.
fn check_encoding(head: &[u8], path: &Path) -> anyhow::Result<()> {
    let message = if is_utf16(head) {
        "the file is UTF-16, expected UTF-8"
    } else if head.contains(&0) {
        "the file contains bytes of value 0, expected text"
    } else if head.contains(&b'\r') && !head.contains(&b'\n') {
        "lines end in carriage returns, expected line feeds"
    } else {
        return Ok(());
    };
    bail!("{}: {message}\nhint: save the table as `CSV UTF-8`", path.display())
}

/// Rejects repeated column names. Several columns may have no name.
fn check_names(names: &[String], path: &Path) -> anyhow::Result<()> {
    let mut known = HashSet::new();
    let named = names.iter().filter(|name| !name.is_empty());
    for name in named {
        if !known.insert(name.to_ascii_lowercase()) {
            bail!(
                "{}: the column `{name}` appears twice\nhint: rename one of them",
                path.display()
            );
        }
    }
    Ok(())
}

/// Returns the most frequent delimiter in the header. Spreadsheets in some languages write `;` or a
/// tab.
fn detect_delimiter(head: &[u8]) -> u8 {
    let (mut counts, mut quoted) = ([(0, b','), (0, b';'), (0, b'\t')], false);
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            _ if quoted => {}
            byte => {
                if let Some((n, _)) = counts.iter_mut().find(|(_, found)| found == byte) {
                    *n += 1;
                }
            }
        }
    }
    let most_frequent = counts.into_iter().rev().max_by_key(|(n, _)| *n);
    most_frequent.map_or(b',', |(_, delimiter)| delimiter)
}

/// A table followed by a sentinel line.
type CsvReader = Reader<RowLimitedReader<io::Chain<BufReader<File>, &'static [u8]>>>;

/// The sentinel line after the table. An unclosed quote consumes it.
const SENTINEL_LINE: &[u8] = b"\n\0end\0\n";
/// Maximum number of restarts after unclosed quotes.
const MAX_RESTARTS: u32 = 100;

/// Creates a reader from the current position of `file`.
fn table_reader(
    file: BufReader<File>,
    delimiter: u8,
    headers: bool,
    budget: &RowBudget,
) -> CsvReader {
    let mut builder = ReaderBuilder::new();
    builder
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(headers)
        .terminator(Terminator::Any(b'\n'));
    builder.from_reader(budget.limit(file.chain(SENTINEL_LINE)))
}

/// Iterator over the non-blank rows with their line numbers.
pub(crate) struct CsvRows {
    reader: CsvReader,
    path: PathBuf,
    delimiter: u8,
    /// Number of lines of the file before the first line of the reader.
    skipped_lines: u64,
    /// Number of restarts after unclosed quotes.
    restarts: u32,
    ended: bool,
    budget: RowBudget,
}

/// An item of a table.
enum CsvItem {
    /// A complete row.
    Row(ByteRecord),
    /// A row with an unclosed quote.
    UnclosedQuote,
    /// A row over the limit.
    TooLong,
}

impl CsvRows {
    /// Creates an iterator over the remaining rows.
    fn new(reader: CsvReader, path: &Path, delimiter: u8, budget: RowBudget) -> Self {
        Self {
            reader,
            path: path.to_owned(),
            delimiter,
            skipped_lines: 0,
            restarts: 0,
            ended: false,
            budget,
        }
    }

    /// Reads a row and its line number. The position of the csv reader includes blank lines before
    /// the row.
    fn read_row(&mut self) -> ::csv::Result<Option<(u64, CsvItem)>> {
        let mut row = ByteRecord::new();
        loop {
            self.budget.renew();
            let start = self.skipped_lines + self.reader.position().line();
            match self.reader.read_byte_record(&mut row) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) if self.budget.is_used_up() => {
                    return Ok(Some((start, CsvItem::TooLong)));
                }
                Err(error) => return Err(error),
            }
            let inner_breaks = row.iter().flatten().filter(|&&byte| byte == b'\n').count() as u64;
            let end = self.skipped_lines + self.reader.position().line();
            let mut fields: Vec<&[u8]> = row.iter().collect();
            if fields.last().is_some_and(|last| last.ends_with(SENTINEL_LINE)) {
                return Ok(Some((end.saturating_sub(inner_breaks), CsvItem::UnclosedQuote)));
            }
            if fields == [SENTINEL_LINE.trim_ascii()] {
                break;
            }
            let line = end.saturating_sub(1 + inner_breaks);
            if let Some(last) = fields.last_mut() {
                *last = last.strip_suffix(b"\r").unwrap_or(last);
            }
            if fields.iter().any(|field| !field.trim_ascii().is_empty()) {
                return Ok(Some((line, CsvItem::Row(ByteRecord::from(fields)))));
            }
        }
        Ok(None)
    }

    /// Restarts the reader after a line of the file.
    fn restart_after(&mut self, line: u64) -> io::Result<()> {
        let mut file = BufReader::new(regular_file::open(&self.path)?);
        for _ in 0..line {
            file.skip_until(b'\n')?;
        }
        self.reader = table_reader(file, self.delimiter, false, &self.budget);
        self.skipped_lines = line;
        self.restarts += 1;
        Ok(())
    }
}

impl Iterator for CsvRows {
    type Item = (u64, Result<ByteRecord, String>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let stop_message = |error: &dyn std::fmt::Display| {
            format!("the table cannot be read any further: {error}")
        };
        match self.read_row() {
            Ok(None) => None,
            Ok(Some((line, CsvItem::Row(row)))) => Some((line, Ok(row))),
            Ok(Some((line, item))) => {
                let mut message = match item {
                    CsvItem::TooLong => format!(
                        "the row is longer than {MAX_LINE_BYTES} bytes\n\
                         hint: check whether a quote is opened in it and closed much later"
                    ),
                    _ => "a quote is opened in this row and never closed\n\
                          hint: close it, or double the quotes inside a text"
                        .to_owned(),
                };
                if self.restarts == MAX_RESTARTS {
                    self.ended = true;
                    message = stop_message(&"too many quotes are never closed");
                } else if let Err(error) = self.restart_after(line) {
                    self.ended = true;
                    message = stop_message(&error);
                }
                Some((line, Err(message)))
            }
            Err(error) => {
                self.ended = true;
                let line = self.skipped_lines + self.reader.position().line();
                Some((line, Err(stop_message(&error))))
            }
        }
    }
}

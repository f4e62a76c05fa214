//! Rows of hand-written CSV files: blank lines, line breaks in quotes, unclosed quotes.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use ::csv::{ByteRecord, Reader, ReaderBuilder, Terminator};
use anyhow::{Context as _, Result as Opened, bail};

use crate::support::files::regular_file;

/// A CSV file with a header.
pub(crate) struct CsvSheet {
    /// Column names.
    pub(crate) names: Vec<String>,
    /// The rows.
    pub(crate) rows: CsvRows,
    /// The delimiter.
    pub(crate) delimiter: char,
}

impl CsvSheet {
    /// Opens a table and reads its header.
    ///
    /// # Errors
    /// The file cannot be opened or read, is not UTF-8 with line feeds, or has two columns with the same name.
    pub(crate) fn open(path: &Path) -> Opened<Self> {
        let context = || format!("table {} cannot be opened", path.display());
        let file = regular_file::open(path).with_context(context)?;
        let beginning = beginning(path).with_context(context)?;
        check_encoding(&beginning, path)?;
        let delimiter = delimiter(&beginning);
        let mut reader = table(BufReader::new(file), delimiter, true);
        let context = || format!("the header of {} cannot be read", path.display());
        let header = reader.byte_headers().with_context(context)?;
        let name = |field: &[u8]| {
            let field = field.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(field);
            String::from_utf8_lossy(field).trim().to_owned()
        };
        let names: Vec<String> = header.iter().map(name).collect();
        if names.iter().any(|name| name.as_bytes() == END.trim_ascii()) {
            bail!(
                "{}: the table is empty\nhint: the first line must contain the column names",
                path.display()
            );
        }
        check_names(&names, path)?;
        Ok(Self {
            names,
            rows: CsvRows::new(reader, path, delimiter),
            delimiter: char::from(delimiter),
        })
    }
}

/// The first bytes of a file, including the header.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path)?
        .take(1 << 16)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Rejects UTF-16 and lone carriage returns, which would parse as one long header.
fn check_encoding(beginning: &[u8], path: &Path) -> Opened<()> {
    let wide = beginning.starts_with(b"\xFF\xFE") || beginning.starts_with(b"\xFE\xFF");
    // In UTF-16, every second byte of ASCII text is zero.
    let half = |pair: &&[u8]| pair.contains(&0);
    let halves = beginning.chunks_exact(2).filter(half).count();
    let fault = if wide || halves > beginning.len() / 4 {
        "a text in UTF-16, expected UTF-8"
    } else if beginning.contains(&0) {
        "it holds bytes of value 0, expected a text"
    } else if beginning.contains(&b'\r') && !beginning.contains(&b'\n') {
        "lines end in carriage returns alone, expected line feeds"
    } else {
        return Ok(());
    };
    bail!(
        "{}: {fault}\nhint: save the table as `CSV UTF-8`",
        path.display()
    )
}

/// Rejects repeated column names. Several columns may have no name.
fn check_names(names: &[String], path: &Path) -> Opened<()> {
    for (i, name) in names.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
        let mut before = names.iter().take(i);
        if before.any(|other| other.eq_ignore_ascii_case(name)) {
            bail!(
                "{}: the column `{name}` appears twice\nhint: rename one of them",
                path.display()
            );
        }
    }
    Ok(())
}

/// The most frequent delimiter in the header. Spreadsheets in some languages write `;`, others a tab.
fn delimiter(beginning: &[u8]) -> u8 {
    let (mut counts, mut quoted) = ([(0, b','), (0, b';'), (0, b'\t')], false);
    for byte in beginning {
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
    let most = counts.into_iter().rev().max_by_key(|(n, _)| *n);
    most.map_or(b',', |(_, delimiter)| delimiter)
}

/// A table followed by a sentinel line.
type CsvReader = Reader<io::Chain<BufReader<File>, &'static [u8]>>;

/// The sentinel line after the table. An unclosed quote consumes it.
const END: &[u8] = b"\n\0end\0\n";
/// Maximum number of restarts after unclosed quotes.
const RESUMED: u32 = 100;

/// Reads a table from the current position of `file`.
fn table(file: BufReader<File>, delimiter: u8, headers: bool) -> CsvReader {
    let mut builder = ReaderBuilder::new();
    builder
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(headers)
        .terminator(Terminator::Any(b'\n'));
    builder.from_reader(file.chain(END))
}

/// The non-blank rows with their line numbers.
pub(crate) struct CsvRows {
    reader: CsvReader,
    path: PathBuf,
    delimiter: u8,
    /// Number of lines before the reader's first line.
    before: u64,
    resumed: u32,
    ended: bool,
}

/// An item of a table.
enum CsvItem {
    Row(ByteRecord),
    /// A row with an unclosed quote.
    Open,
}

impl CsvRows {
    /// Creates an iterator over the remaining rows.
    fn new(reader: CsvReader, path: &Path, delimiter: u8) -> Self {
        Self {
            reader,
            path: path.to_owned(),
            delimiter,
            before: 0,
            resumed: 0,
            ended: false,
        }
    }

    /// Reads a row. The position of the csv reader includes blank lines before the row.
    fn read(&mut self) -> ::csv::Result<Option<(u64, CsvItem)>> {
        let mut row = ByteRecord::new();
        while self.reader.read_byte_record(&mut row)? {
            let within = row.iter().flatten().filter(|&&byte| byte == b'\n').count() as u64;
            let behind = self.before + self.reader.position().line();
            let mut fields: Vec<&[u8]> = row.iter().collect();
            if fields.last().is_some_and(|last| last.ends_with(END)) {
                return Ok(Some((behind.saturating_sub(within), CsvItem::Open)));
            }
            if fields == [END.trim_ascii()] {
                break;
            }
            let line = behind.saturating_sub(1 + within);
            if let Some(last) = fields.last_mut() {
                *last = last.strip_suffix(b"\r").unwrap_or(last);
            }
            if fields.iter().any(|field| !field.trim_ascii().is_empty()) {
                return Ok(Some((line, CsvItem::Row(ByteRecord::from(fields)))));
            }
        }
        Ok(None)
    }

    /// Restarts after a line of the file.
    fn resume(&mut self, line: u64) -> io::Result<()> {
        let mut file = BufReader::new(regular_file::open(&self.path)?);
        for _ in 0..line {
            file.skip_until(b'\n')?;
        }
        self.reader = table(file, self.delimiter, false);
        self.before = line;
        self.resumed += 1;
        Ok(())
    }
}

impl Iterator for CsvRows {
    type Item = (u64, Result<ByteRecord, String>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let stop = |error: &dyn std::fmt::Display| {
            format!("the table cannot be read any further: {error}")
        };
        match self.read() {
            Ok(None) => None,
            Ok(Some((line, CsvItem::Row(row)))) => Some((line, Ok(row))),
            Ok(Some((line, CsvItem::Open))) => {
                let mut fault = String::from(
                    "a quote is opened in this row and never closed\n\
                     hint: close it, or double the quotes inside a text",
                );
                if self.resumed == RESUMED {
                    self.ended = true;
                    fault = stop(&"too many quotes are never closed");
                } else if let Err(error) = self.resume(line) {
                    self.ended = true;
                    fault = stop(&error);
                }
                Some((line, Err(fault)))
            }
            Err(error) => {
                self.ended = true;
                let line = self.before + self.reader.position().line();
                Some((line, Err(stop(&error))))
            }
        }
    }
}

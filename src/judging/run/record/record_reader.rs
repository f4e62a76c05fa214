//! Reader of `records.jsonl`: parses batches of lines in parallel and returns them in order.
//!
//! The caller chooses a row type (the whole [`Record`] or the fields it needs) and a conversion,
//! which runs in the threads of the parser. At most one batch of lines is in memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use rayon::prelude::*;
use serde::de::DeserializeOwned;

use crate::data::cases::Lines;
use crate::judging::run::journal::RECORDS;
use crate::judging::run::output::contains_records;
use crate::judging::run::record::{Record, SCHEMA};
use crate::support::files::regular_file;

/// Maximum number of lines in a batch.
const BATCH_LINES: usize = 2048;
/// Number of bytes that ends a batch early.
const BATCH_BYTES: usize = 4 << 20;

/// Row type of a [`RecordReader`]: the fields to read from a record.
pub trait RecordRow: DeserializeOwned {
    /// Returns the schema version of the record.
    fn schema(&self) -> u32;
}

impl RecordRow for Record {
    fn schema(&self) -> u32 {
        self.schema
    }
}

/// Converts a line and its number, from 1.
type ConvertLine<'a, T> = Box<dyn Fn(&str, u64) -> Result<T> + Sync + Send + 'a>;

/// Iterator over the converted records of a file. A torn last line is left out.
pub struct RecordReader<'a, T> {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    convert: ConvertLine<'a, T>,
    parsed: VecDeque<Result<T>>,
    is_torn: bool,
}

impl<'a, T: Send> RecordReader<'a, T> {
    /// Opens a records file, or the records in the output folder of a run. `convert` receives each
    /// row and its line number, from 1.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened. The iterator returns an error with file and line if a line
    /// cannot be read, is not a record, has a newer schema, or cannot be converted.
    pub fn open<R: RecordRow>(
        path: &Path,
        convert: impl Fn(R, u64) -> Result<T> + Sync + Send + 'a,
    ) -> Result<Self> {
        let path = if path.is_dir() { path.join(RECORDS) } else { path.to_owned() };
        let file = regular_file::open(&path).with_context(|| {
            format!(
                "records {} cannot be opened\n\
                 hint: expected the folder that `acem3 judge --out` wrote, or its records.jsonl",
                path.display()
            )
        })?;
        let error_path = path.clone();
        let convert_line = move |line: &str, number| {
            let row = parse_line(&error_path, number, line)?;
            convert(row, number)
                .map_err(|e| anyhow!("{} line {number}: {e:#}", error_path.display()))
        };
        Ok(Self {
            path,
            lines: Lines::new(BufReader::with_capacity(1 << 20, file)),
            convert: Box::new(convert_line),
            parsed: VecDeque::new(),
            is_torn: false,
        })
    }

    /// Returns the path of the records file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the last line was torn; valid after the iterator has ended.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Reads and parses the next batch of lines.
    fn fill_batch(&mut self) {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_LINES && bytes < BATCH_BYTES {
            let Some((number, line)) = self.lines.next() else {
                break;
            };
            bytes += line.as_ref().map_or(0, String::len);
            batch.push((number, line));
        }
        let convert = |(number, line): &(u64, Result<String, String>)| match line {
            Ok(text) => (self.convert)(text, *number),
            Err(problem) => Err(anyhow!("{} line {number}: {problem}", self.path.display())),
        };
        let parsed: Vec<Result<T>> = batch.par_iter().map(convert).collect();
        for ((number, _), row) in batch.iter().zip(parsed) {
            if row.is_err() && self.lines.is_torn(*number) {
                self.is_torn = true;
            } else {
                self.parsed.push_back(row);
            }
        }
    }
}

impl<T: Send> Iterator for RecordReader<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.parsed.is_empty() {
            self.fill_batch();
        }
        self.parsed.pop_front()
    }
}

/// Parses a line of records. `path` and `number` appear in errors.
///
/// # Errors
///
/// If it is not a record, or has a newer schema.
pub fn parse_line<R: RecordRow>(path: &Path, number: u64, line: &str) -> Result<R> {
    let location = || format!("{} line {number}", path.display());
    let row: R = serde_json::from_str(line).with_context(|| {
        let hint = "hint: expected the records.jsonl that `acem3 judge --out` wrote";
        format!("{}: not a record\n{hint}", location())
    })?;
    if row.schema() > SCHEMA {
        bail!(
            "{}: written by a newer version of acem3 (schema {}, expected at most {SCHEMA})\n\
             hint: update acem3",
            location(),
            row.schema()
        );
    }
    Ok(row)
}

/// Opens a records file, or the records in the output folder of a run, to read whole records.
///
/// # Errors
///
/// See [`RecordReader::open`].
pub fn open_records(path: &Path) -> Result<RecordReader<'static, Record>> {
    RecordReader::open(path, |record: Record, _| Ok(record))
}

/// Finds the records file of a path: the file itself, or the records in the output folder of a run.
/// Returns `None` for other paths.
pub fn find_records(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return contains_records(path).then(|| path.join(RECORDS));
    }
    let file = regular_file::open(path).ok()?;
    let mut line = String::new();
    BufReader::new(file).read_line(&mut line).ok()?;
    let is_record = serde_json::from_str::<Record>(&line).is_ok();
    is_record.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn line(case: &str) -> String {
        let record = json!({
            "schema": 1, "case": case, "pair": null, "line": 1, "image": null,
            "judge": "j", "status": "noted", "message": "m",
        });
        format!("{record}\n")
    }

    fn read(text: &str) -> (Vec<Result<String>>, bool) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RECORDS), text).unwrap();
        let convert = |record: Record, number| match record.subject.case {
            Some(case) if case == "bad" => bail!("bad case"),
            case => Ok(format!("{number} {}", case.unwrap_or_default())),
        };
        let mut reader = RecordReader::open(folder.path(), convert).unwrap();
        let rows = reader.by_ref().collect();
        (rows, reader.is_torn())
    }

    #[test]
    fn rows_keep_their_order_over_batches() {
        let n = 2 * BATCH_LINES + 3;
        let text: String = (0..n).map(|i| line(&i.to_string())).collect();
        let (rows, is_torn) = read(&text);
        assert_eq!((rows.len(), is_torn), (n, false));
        for (i, row) in rows.into_iter().enumerate() {
            assert_eq!(row.unwrap(), format!("{} {i}", i + 1));
        }
    }

    #[test]
    fn malformed_lines_are_reported_with_file_and_line() {
        let newer = line("x").replace("\"schema\":1", "\"schema\":99");
        let text = [line("a"), "{}\n".to_owned(), line("bad"), newer].concat();
        let (rows, _) = read(&text);
        let errors: Vec<String> =
            rows.into_iter().skip(1).map(|row| format!("{:#}", row.unwrap_err())).collect();
        for (error, expected) in errors.iter().zip([
            "records.jsonl line 2: not a record",
            "records.jsonl line 3: bad case",
            "records.jsonl line 4: written by a newer version",
        ]) {
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(errors.len(), 3);
    }

    #[test]
    fn torn_last_line_is_left_out() {
        let torn = line("b");
        let (rows, is_torn) = read(&(line("a") + &torn[..torn.len() / 2]));
        assert_eq!((rows.len(), is_torn), (1, true));
        // A complete last line without a line break is a record.
        let (rows, is_torn) = read((line("a") + &torn).trim_end());
        assert_eq!((rows.len(), is_torn), (2, false));
    }

    #[test]
    fn find_records_rejects_other_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(find_records(folder.path()), None);
        let file = folder.path().join(RECORDS);
        fs::write(&file, line("a")).unwrap();
        assert_eq!(find_records(folder.path()), Some(file.clone()));
        assert_eq!(find_records(&file), Some(file.clone()));
        fs::write(&file, "{\"id\": 1}\n").unwrap();
        assert_eq!(find_records(&file), None);
    }
}

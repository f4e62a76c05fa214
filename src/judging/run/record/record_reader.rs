//! Reader of `records.jsonl`: parses batches of lines in parallel and returns them in order.
//!
//! The caller chooses a row type (the whole [`Record`] or the fields it needs) and a conversion,
//! which runs in the threads of the parser. At most one batch of lines is in memory. Damaged lines
//! are left out and counted in the [`RunState`].

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow};
use rayon::prelude::*;

use crate::data::cases::Lines;
use crate::judging::run::manifest::Manifest;
use crate::judging::run::record::checksum::LineChecksum;
use crate::judging::run::record::damage::DamagedLine;
use crate::judging::run::record::line_check::LineCheck;
use crate::judging::run::record::record_row::{RecordRow, parse_line};
use crate::judging::run::record::{RECORDS, Record};
use crate::judging::run::run_state::{FoundRecords, JUDGE_AGAIN, RunState};
use crate::support::files::regular_file;

/// Maximum number of lines in a batch.
const BATCH_LINES: usize = 2048;
/// Number of bytes that ends a batch early.
const BATCH_BYTES: usize = 4 << 20;

/// A converted line.
struct ParsedRow<T> {
    value: T,
    checksum: Option<LineChecksum>,
    is_judged: bool,
    /// Hash of the case; `None` if the record does not count.
    case: Option<u64>,
}

/// Reason why a line has no row.
enum LineRejection {
    /// The line is damaged.
    Damaged(DamagedLine, Error),
    /// No line can be used: the file cannot be read, or is from a newer version.
    Fatal(Error),
}

/// The file of a line and the judge of its run.
struct LineLocation {
    path: PathBuf,
    /// Hash of the judge in the manifest, if there is one.
    judge: Option<String>,
}

impl LineLocation {
    /// Checks, parses and converts a line.
    fn convert_line<R: RecordRow, T>(
        &self,
        check: &LineCheck,
        line: &str,
        number: u64,
        convert: impl Fn(R, u64) -> Result<T>,
    ) -> Result<ParsedRow<T>, LineRejection> {
        let damaged = |problem: String, error: Error| {
            LineRejection::Damaged(DamagedLine::new(number, line.as_bytes(), problem), error)
        };
        let rejected = |problem: String| {
            let location = format!("{} line {number}", self.path.display());
            let error = anyhow!("{location}: {problem}\nhint: {JUDGE_AGAIN}");
            damaged(problem, error)
        };
        let checksum = check.check(line.as_bytes()).map_err(rejected)?;
        let row: R = parse_line(&self.path, number, line).map_err(|error| match error
            .downcast_ref::<serde_json::Error>(
        ) {
            Some(cause) => damaged(format!("not a record, {cause}"), error),
            None => LineRejection::Fatal(error),
        })?;
        let identity = row.identity();
        if let Some(judge) = self.judge.as_ref().filter(|judge| *judge != identity.judge) {
            return Err(rejected(format!(
                "a record of another judge ({}, run.json names {judge})",
                identity.judge
            )));
        }
        let (is_judged, case) = (identity.is_judged, identity.hash_case());
        let value = convert(row, number).map_err(|error| rejected(format!("{error:#}")))?;
        Ok(ParsedRow { value, checksum, is_judged, case })
    }
}

/// Converts a line and its number, from 1.
type ConvertLine<'a, T> =
    Box<dyn Fn(&LineCheck, &str, u64) -> Result<ParsedRow<T>, LineRejection> + Sync + Send + 'a>;

/// Iterator over the converted records of a file. Damaged lines are left out. If no line is intact,
/// the only item is an error that describes the first line.
pub struct RecordReader<'a, T> {
    path: PathBuf,
    manifest: Option<Manifest>,
    check: LineCheck,
    lines: Lines<BufReader<File>>,
    convert: ConvertLine<'a, T>,
    parsed: VecDeque<Result<T>>,
    found: FoundRecords,
    cases: HashSet<u64>,
    /// Error of the first damaged line, until a line is intact.
    first_error: Option<Error>,
    has_intact_line: bool,
}

impl<'a, T: Send> RecordReader<'a, T> {
    /// Opens a records file, or the records in the output folder of a run. `convert` receives each
    /// row and its line number, from 1.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or the manifest of the run is damaged. The iterator returns an
    /// error with file and line if the file cannot be read any further, if a line has a newer
    /// schema, or if no line is an intact record.
    pub fn open<R: RecordRow>(
        path: &Path,
        convert: impl Fn(R, u64) -> Result<T> + Sync + Send + 'a,
    ) -> Result<Self> {
        let path = if path.is_dir() { path.join(RECORDS) } else { path.to_owned() };
        let context = || {
            format!(
                "records {} cannot be opened\n\
                 hint: expected the folder that `acem3 judge --out` wrote, or its records.jsonl",
                path.display()
            )
        };
        let file = regular_file::open(&path).with_context(context)?;
        let manifest = read_manifest(&path)?;
        let promises_checksums = manifest.as_ref().is_some_and(|m| m.record_checksums);
        let check = LineCheck::for_file(&path, promises_checksums).with_context(context)?;
        let location = LineLocation {
            path: path.clone(),
            judge: manifest.as_ref().map(|manifest| manifest.judge_sha256.short_hex()),
        };
        let convert = move |check: &LineCheck, line: &str, number| {
            location.convert_line(check, line, number, &convert)
        };
        Ok(Self {
            path,
            manifest,
            check,
            lines: Lines::new(BufReader::with_capacity(1 << 20, file)),
            convert: Box::new(convert),
            parsed: VecDeque::new(),
            found: FoundRecords::default(),
            cases: HashSet::new(),
            first_error: None,
            has_intact_line: false,
        })
    }

    /// Returns the path of the records file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the manifest of the run, if the file is in its folder.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Returns the state of the run; valid after the iterator has ended.
    pub fn state(&self) -> RunState {
        RunState::new(&self.path, self.manifest.as_ref(), &self.found)
    }

    /// Reads and parses the next batch of lines. Returns false at the end of the file.
    fn fill_batch(&mut self) -> bool {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_LINES && bytes < BATCH_BYTES {
            let Some((number, line)) = self.lines.next() else {
                break;
            };
            bytes += line.as_ref().map_or(0, String::len);
            batch.push((number, line));
        }
        let last = batch.last().map_or(0, |(number, _)| *number);
        let has_failed = self.lines.has_failed();
        let convert = |(number, line): &(u64, Result<String, String>)| match line {
            Ok(text) => (self.convert)(&self.check, text, *number),
            Err(problem) => {
                let error = anyhow!("{} line {number}: {problem}", self.path.display());
                Err(if has_failed && *number == last {
                    LineRejection::Fatal(error)
                } else {
                    LineRejection::Damaged(DamagedLine::new(*number, b"", problem), error)
                })
            }
        };
        let parsed: Vec<_> = batch.par_iter().map(convert).collect();
        for ((number, line), row) in batch.iter().zip(parsed) {
            self.add_line(*number, line.as_deref().unwrap_or_default(), row);
        }
        !batch.is_empty()
    }

    /// Adds a line to the rows or to the damaged lines.
    fn add_line(&mut self, number: u64, line: &str, row: Result<ParsedRow<T>, LineRejection>) {
        self.found.lines += 1;
        match row {
            Ok(row) => {
                let copied = row.checksum.filter(|_| row.is_judged);
                if let Some(first) = copied.and_then(|c| self.check.find_copy(c, number)) {
                    let problem = format!("a copy of line {first}");
                    self.found.damage.add(DamagedLine::new(number, line.as_bytes(), problem));
                    return;
                }
                self.has_intact_line = true;
                match row.checksum {
                    Some(checksum) => self.found.checksum.add(checksum),
                    None => self.found.unchecked += 1,
                }
                if row.case.is_some_and(|case| self.cases.insert(case)) {
                    self.found.cases += 1;
                }
                self.parsed.push_back(Ok(row.value));
            }
            Err(LineRejection::Damaged(..)) if self.lines.is_torn(number) => {
                self.found.lines -= 1;
                self.found.is_torn = true;
            }
            Err(LineRejection::Damaged(line, error)) => {
                self.found.damage.add(line);
                self.first_error.get_or_insert(error);
            }
            Err(LineRejection::Fatal(error)) => self.parsed.push_back(Err(error)),
        }
    }
}

impl<T: Send> Iterator for RecordReader<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.parsed.is_empty() {
            let has_more = self.fill_batch();
            // A file without an intact line is a file of another kind. Do not read all of it.
            if !self.has_intact_line && self.parsed.is_empty() {
                return self.first_error.take().map(Err);
            }
            if !has_more {
                return None;
            }
        }
        self.parsed.pop_front()
    }
}

/// Reads the manifest of a run if this file is the records of its folder.
fn read_manifest(path: &Path) -> Result<Option<Manifest>> {
    match (path.file_name(), path.parent()) {
        (Some(name), Some(folder)) if name == RECORDS => Manifest::read_if_exists(folder),
        _ => Ok(None),
    }
}

/// Opens a records file, or the records in the output folder of a run, to read whole records.
///
/// # Errors
///
/// See [`RecordReader::open`].
pub fn open_records(path: &Path) -> Result<RecordReader<'static, Record>> {
    RecordReader::open(path, |record: Record, _| Ok(record))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::judging::run::record::checksum::append_checksum;

    fn line(case: &str) -> String {
        let record = json!({
            "schema": 1, "case": case, "pair": null, "line": 1, "image": null,
            "judge": "j", "status": "unscored", "reason": "parse", "message": "m",
        });
        append_checksum(&record.to_string()) + "\n"
    }

    fn read(text: &[u8]) -> (Vec<Result<String>>, RunState) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RECORDS), text).unwrap();
        let convert = |record: Record, number| match record.subject.case {
            Some(case) if case == "bad" => Err(anyhow!("bad case")),
            case => Ok(format!("{number} {}", case.unwrap_or_default())),
        };
        let mut reader = RecordReader::open(folder.path(), convert).unwrap();
        let rows = reader.by_ref().collect();
        (rows, reader.state())
    }

    fn values(rows: Vec<Result<String>>) -> Vec<String> {
        rows.into_iter().map(Result::unwrap).collect()
    }

    fn is_torn(state: &RunState) -> bool {
        state.problems.iter().any(|p| p.problem.contains("the last record is incomplete"))
    }

    #[test]
    fn rows_keep_their_order_over_batches() {
        let n = 2 * BATCH_LINES + 3;
        let text: String = (0..n).map(|i| line(&i.to_string())).collect();
        let (rows, state) = read(text.as_bytes());
        assert_eq!((rows.len(), state.cases, is_torn(&state)), (n, n as u64, false));
        for (i, row) in rows.into_iter().enumerate() {
            assert_eq!(row.unwrap(), format!("{} {i}", i + 1));
        }
    }

    #[test]
    fn damaged_lines_are_left_out_and_named() {
        let forged = line("x").replace("parse", "image");
        let unchecked = r#"{"schema":1,"case":"y"}"#;
        let bad = line("bad");
        let damaged = ["{}", "\0\0", bad.trim_end(), forged.trim_end(), unchecked];
        let mut text = format!("{}\n{}{}\n", damaged[0], line("a"), damaged[1..].join("\n"));
        text += &line("b");
        let mut bytes = text.into_bytes();
        bytes.extend(b"\xff\xfe{}\n");
        let (rows, state) = read(&bytes);
        assert_eq!(values(rows), ["2 a", "7 b"]);
        let found: Vec<(u64, Option<&str>)> =
            state.damaged_lines.iter().map(|line| (line.line, line.case.as_deref())).collect();
        let expected =
            [(1, None), (3, None), (4, Some("bad")), (5, Some("x")), (6, Some("y")), (8, None)];
        assert_eq!((state.damaged, found), (6, expected.to_vec()));
        assert_eq!((state.cases, state.complete), (2, Some(false)));
    }

    #[test]
    fn file_without_an_intact_line_and_newer_records_are_errors() {
        let error = |text: &str| {
            let (mut rows, _) = read(text.as_bytes());
            let error = format!("{:#}", rows.remove(0).unwrap_err());
            assert!(rows.is_empty(), "{rows:?}");
            error
        };
        assert!(error("{}\n{}\n").contains("records.jsonl line 1: not a record"));
        let newer = line("x").replace("\"schema\":1", "\"schema\":99");
        assert!(error(&newer).contains("line 1: the checksum does not match"));
        let (json, _) = newer.rsplit_once(",\"checksum").unwrap();
        let newer = append_checksum(&format!("{json}}}"));
        assert!(error(&newer).contains("line 1: written by a newer version"));
    }

    #[test]
    fn torn_last_line_is_left_out() {
        let torn = line("b");
        let (rows, state) = read((line("a") + &torn[..torn.len() / 2]).as_bytes());
        assert_eq!((rows.len(), state.damaged, is_torn(&state)), (1, 0, true));
        // A complete last line without a line break is a record.
        let (rows, state) = read((line("a") + &torn).trim_end().as_bytes());
        assert_eq!((rows.len(), is_torn(&state)), (2, false));
    }
}

//! `records.damaged.jsonl`: lines that were changed after they were written.
//!
//! Before a run resumes, it checks each line of its files. Damaged lines move to this file, so that
//! nothing is lost, and their cases are judged again. Records of earlier versions get a checksum.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::judging::run::record::checksum::{LineChecksum, append_checksum};
use crate::judging::run::record::damage::DamagedLine;
use crate::judging::run::record::line_check::LineCheck;
use crate::judging::run::record::{Record, SCHEMA};
use crate::support::digest::Digest;
use crate::support::files::atomic_file::replace_atomic;

/// File name of the damaged lines in the output folder.
pub const DAMAGED_FILE: &str = "records.damaged.jsonl";

/// Problem of a last line without a line break.
const INCOMPLETE: &str = "the line is incomplete";

/// The lines of a records file, as checked.
pub(super) struct FileScan {
    /// State of each line, in order.
    lines: Vec<ScannedLine>,
    /// True if the last line has no line break and is no complete record.
    pub(super) is_torn: bool,
    /// True if a line ends with anything but a line feed, which no run writes.
    has_other_breaks: bool,
}

/// State of one line.
enum ScannedLine {
    /// A record of this judge.
    Own,
    /// A record of this judge without checksum, from an earlier version.
    Unchecked,
    /// A record of another judge.
    Foreign(DamagedLine),
    /// A damaged line.
    Damaged(DamagedLine),
}

/// The fields of a record that its check needs.
#[derive(Deserialize)]
struct RecordHeader {
    schema: u32,
    judge: String,
    status: String,
}

impl FileScan {
    /// Checks the lines of a file. `judge`: hash of the judge in its records. `hint`: what to do
    /// about records of a newer version.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a record is from a newer version.
    pub(super) fn read(path: &Path, mut check: LineCheck, judge: &str, hint: &str) -> Result<Self> {
        let context = || format!("cannot read {}", path.display());
        let mut reader = BufReader::with_capacity(1 << 20, File::open(path).with_context(context)?);
        let mut scan = Self { lines: Vec::new(), is_torn: false, has_other_breaks: false };
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            if reader.read_until(b'\n', &mut line).with_context(context)? == 0 {
                break;
            }
            let damaged = |problem| ScannedLine::Damaged(DamagedLine::new(number, &line, problem));
            let scanned = match read_header(&check, &line) {
                Ok((_, header)) if header.schema > SCHEMA => bail!(
                    "{}: written by a newer version of acem3 (schema {}, expected at most {SCHEMA})\n{hint}",
                    path.display(),
                    header.schema
                ),
                Ok((_, header)) if header.judge != judge => {
                    let problem = format!("a record of another judge ({})", header.judge);
                    ScannedLine::Foreign(DamagedLine::new(number, &line, problem))
                }
                Ok((None, _)) => ScannedLine::Unchecked,
                Ok((Some(checksum), header)) => {
                    let copied = (header.status == "judged").then_some(checksum);
                    match copied.and_then(|checksum| check.find_copy(checksum, number)) {
                        Some(first) => damaged(format!("a copy of line {first}")),
                        None => ScannedLine::Own,
                    }
                }
                Err(_) if !line.ends_with(b"\n") => {
                    scan.is_torn = true;
                    damaged(INCOMPLETE.to_owned())
                }
                Err(problem) => damaged(problem),
            };
            scan.has_other_breaks |= line.trim_ascii_end().len() + 1 != line.len();
            scan.lines.push(scanned);
        }
        Ok(scan)
    }

    /// Returns true if a line is a record of this judge.
    pub(super) fn has_own(&self) -> bool {
        self.lines.iter().any(|line| matches!(line, ScannedLine::Own | ScannedLine::Unchecked))
    }

    /// Returns the number of records without checksum.
    pub(super) fn count_unchecked(&self) -> u64 {
        let unchecked = self.lines.iter().filter(|line| matches!(line, ScannedLine::Unchecked));
        unchecked.count() as u64
    }

    /// Returns true if a line is an intact record of another judge.
    pub(super) fn has_foreign(&self) -> bool {
        self.lines.iter().any(|line| matches!(line, ScannedLine::Foreign(_)))
    }

    /// Returns the lines that do not belong into the file.
    pub(super) fn into_damaged(self) -> impl Iterator<Item = DamagedLine> {
        self.lines.into_iter().filter_map(|line| match line {
            ScannedLine::Own | ScannedLine::Unchecked => None,
            ScannedLine::Foreign(line) | ScannedLine::Damaged(line) => Some(line),
        })
    }

    /// Moves the damaged lines and those of other judges to the damaged lines of a folder, and adds
    /// checksums to the records without one. Does nothing if all lines are as they should be.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub(super) fn repair(&self, path: &Path, folder: &Path) -> Result<()> {
        let is_own = |line: &ScannedLine| matches!(line, ScannedLine::Own);
        if !self.has_other_breaks && self.lines.iter().all(is_own) {
            return Ok(());
        }
        let damaged_path = folder.join(DAMAGED_FILE);
        let attempt = |out: &mut BufWriter<File>| -> io::Result<()> {
            let has_damage =
                |line: &ScannedLine| !matches!(line, ScannedLine::Own | ScannedLine::Unchecked);
            let mut damaged = if self.lines.iter().any(has_damage) {
                Some(DamagedFile::open(&damaged_path)?)
            } else {
                None
            };
            let mut reader = BufReader::new(File::open(path)?);
            let mut line = Vec::new();
            for scanned in &self.lines {
                line.clear();
                reader.read_until(b'\n', &mut line)?;
                match scanned {
                    ScannedLine::Own => {
                        out.write_all(line.trim_ascii_end())?;
                        out.write_all(b"\n")?;
                    }
                    ScannedLine::Unchecked => {
                        let json = String::from_utf8_lossy(line.trim_ascii_end());
                        writeln!(out, "{}", append_checksum(&json))?;
                    }
                    ScannedLine::Foreign(_) | ScannedLine::Damaged(_) => {
                        damaged.as_mut().map_or(Ok(()), |file| file.add(&line))?;
                    }
                }
            }
            // Damaged lines first, so that each line is in one of the files at any time.
            damaged.map_or(Ok(()), DamagedFile::finish)
        };
        replace_atomic(path, attempt).with_context(|| {
            format!(
                "cannot move damaged lines of {} to {DAMAGED_FILE}\n\
                 hint: check free space and write permissions",
                path.display()
            )
        })
    }
}

/// Checks a line and reads its header. A record without checksum must be complete.
fn read_header(
    check: &LineCheck,
    line: &[u8],
) -> Result<(Option<LineChecksum>, RecordHeader), String> {
    let checksum = check.check(line)?;
    let problem = |error: serde_json::Error| format!("not a record, {error}");
    if checksum.is_none() {
        serde_json::from_slice::<Record>(line).map_err(problem)?;
    }
    Ok((checksum, serde_json::from_slice(line).map_err(problem)?))
}

/// The file of damaged lines. A line that it has already is not added again.
struct DamagedFile {
    out: BufWriter<File>,
    known: HashSet<Digest>,
}

impl DamagedFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut known = HashSet::new();
        let (mut reader, mut line) = (BufReader::new(&file), Vec::new());
        while reader.read_until(b'\n', &mut line)? > 0 {
            known.insert(Digest::sha256(line.strip_suffix(b"\n").unwrap_or(&line)));
            line.clear();
        }
        Ok(Self { out: BufWriter::new(file), known })
    }

    fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if self.known.insert(Digest::sha256(line)) {
            self.out.write_all(line)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_data()
    }
}

//! An append-only file of JSON lines.
//!
//! A line is on disk before a page says that it is saved. A line that the program did not finish writing
//! was never confirmed; opening the journal removes it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::entry::{LineFormat, SCHEMA};
use crate::judging::run::journal::torn_line::truncate_torn_line;

/// An open journal of lines of one format.
#[derive(Debug)]
pub struct LineJournal<T> {
    file: File,
    path: PathBuf,
    /// Number of bytes of complete lines.
    length: u64,
    /// True if a part of a line remains at the end, so that no line may follow.
    is_torn: bool,
    format: PhantomData<T>,
}

impl<T: LineFormat> LineJournal<T> {
    /// Opens or creates the journal in a folder, and reads its entries.
    ///
    /// # Errors
    /// If the file cannot be read or written, or a line is not an entry. The message names the line.
    pub fn open(folder: &Path) -> Result<(Self, Vec<T>)> {
        let path = folder.join(T::FILE);
        let context = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).append(true).create(true).open(&path).with_context(context)?;
        truncate_torn_line(&mut file).with_context(context)?;
        sync_folder(folder).with_context(context)?;
        let (entries, length) = read_entries(&path)?;
        Ok((Self { file, path, length, is_torn: false, format: PhantomData }, entries))
    }

    /// Reads the entries of the journal in a folder, without a line that another process is writing.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not an entry.
    pub fn read(folder: &Path) -> Result<Vec<T>> {
        let path = folder.join(T::FILE);
        if !path.exists() {
            return Ok(Vec::new());
        }
        Ok(read_entries(&path)?.0)
    }

    /// Appends an entry. When this returns, the entry is on disk.
    ///
    /// # Errors
    /// If the entry cannot be written. The journal then does not contain it.
    pub fn append(&mut self, entry: &T) -> Result<()> {
        if self.is_torn {
            bail!(
                "{} has a part of a line at its end\nhint: start the command again",
                self.path.display()
            );
        }
        let mut line = serde_json::to_vec(entry).context("cannot write an entry as JSON")?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A part of the line may be in the file. The next line must not continue it.
            let context = format!("cannot write {}", self.path.display());
            let removed = self.file.set_len(self.length);
            self.is_torn = removed.is_err();
            removed.with_context(|| format!("{context}, and a part of a line remains"))?;
            return Err(error).context(context);
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

/// Reads the complete lines of a journal, with their number of bytes.
fn read_entries<T: LineFormat>(path: &Path) -> Result<(Vec<T>, u64)> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot open {}", path.display()))?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let complete = bytes.get(..end).unwrap_or_default();
    let mut entries = Vec::new();
    for (i, line) in complete.split(|byte| *byte == b'\n').enumerate() {
        if !line.is_empty() {
            entries.push(parse_entry(line).with_context(|| {
                format!(
                    "{} line {}: not an entry of the journal\n\
                     hint: restore the file from a copy, or move the line to another file",
                    path.display(),
                    i + 1
                )
            })?);
        }
    }
    Ok((entries, end as u64))
}

/// Writes the names of a folder's files to the disk, so that a new file is still there after the machine
/// stops.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn parse_entry<T: LineFormat>(line: &[u8]) -> Result<T> {
    let entry: T = serde_json::from_slice(line)?;
    if entry.schema() != SCHEMA {
        bail!("version {} of the format, expected {SCHEMA}", entry.schema());
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::super::{EntryAction, JournalEntry, TaskAnswers};
    use super::*;
    use crate::annotation::study::Part;

    fn entry(case: &str) -> JournalEntry {
        JournalEntry {
            schema: SCHEMA,
            time: "2026-01-02T03:04:05Z".to_owned(),
            rater: "dr \"x\"".to_owned(),
            part: Part::Responses,
            case: case.to_owned(),
            models: vec!["a".to_owned(), "b".to_owned()],
            swapped: true,
            action: EntryAction::Save,
            answers: TaskAnswers::default(),
            seconds: 1.5,
        }
    }

    #[test]
    fn entries_survive_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, entries) = LineJournal::<JournalEntry>::open(dir.path()).unwrap();
        assert!(entries.is_empty());
        journal.append(&entry("1")).unwrap();
        journal.append(&entry("2\n3")).unwrap();
        drop(journal);
        let path = dir.path().join(JournalEntry::FILE);
        let complete = std::fs::read(&path).unwrap();
        // Killed at any byte of a third line.
        let line = serde_json::to_vec(&entry("4")).unwrap();
        for length in 0..=line.len() {
            std::fs::write(&path, [&complete, &line[..length]].concat()).unwrap();
            let (mut journal, entries) = LineJournal::<JournalEntry>::open(dir.path()).unwrap();
            assert_eq!(entries, [entry("1"), entry("2\n3")]);
            journal.append(&entry("5")).unwrap();
            let (_, entries) = LineJournal::<JournalEntry>::open(dir.path()).unwrap();
            assert_eq!(entries.len(), 3);
        }
    }

    #[test]
    fn damaged_lines_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = LineJournal::<JournalEntry>::open(dir.path()).unwrap();
        journal.append(&entry("1")).unwrap();
        let path = dir.path().join(JournalEntry::FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        for damaged in ["{}\n".to_owned(), text.replace("\"schema\":1", "\"schema\":2")] {
            std::fs::write(&path, text.clone() + &damaged).unwrap();
            let error = format!("{:#}", LineJournal::<JournalEntry>::open(dir.path()).unwrap_err());
            assert!(error.contains("line 2") && error.contains("hint:"), "{error}");
        }
    }
}

//! An append-only file of JSON lines.
//!
//! A line is on disk before a page says that it is saved. A line that the program did not finish writing
//! was never confirmed; opening the journal removes it.

use std::marker::PhantomData;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::entry::{LineFormat, SCHEMA};
use crate::support::files::append_file::{AppendFile, read_complete_lines};

/// An open journal of lines of one format.
#[derive(Debug)]
pub struct LineJournal<T> {
    file: AppendFile,
    format: PhantomData<T>,
}

impl<T: LineFormat> LineJournal<T> {
    /// Opens or creates the journal in a folder, and reads its entries.
    ///
    /// # Errors
    /// If the file cannot be read or written, or a line is not an entry. The message names the line.
    pub fn open(folder: &Path) -> Result<(Self, Vec<T>)> {
        let path = folder.join(T::FILE);
        let (file, text) = AppendFile::open(&path)?;
        Ok((Self { file, format: PhantomData }, parse_entries(&path, &text)?))
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
        parse_entries(&path, &read_complete_lines(&path)?)
    }

    /// Appends an entry. When this returns, the entry is on disk.
    ///
    /// # Errors
    /// If the entry cannot be written. The journal then does not contain it.
    pub fn append(&mut self, entry: &T) -> Result<()> {
        let line = serde_json::to_string(entry).context("cannot write an entry as JSON")?;
        self.file.append(&[line])
    }
}

/// Parses the lines of a journal.
fn parse_entries<T: LineFormat>(path: &Path, text: &str) -> Result<Vec<T>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let entries = lines.map(|(i, line)| {
        parse_entry(line).with_context(|| {
            format!(
                "{} line {}: not an entry of the journal\n\
                 hint: restore the file from a copy, or move the line to another file",
                path.display(),
                i + 1
            )
        })
    });
    entries.collect()
}

fn parse_entry<T: LineFormat>(line: &str) -> Result<T> {
    let entry: T = serde_json::from_str(line)?;
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

//! `records.aside.jsonl`: superseded records, which the current input does not need or needs at
//! another position.
//!
//! If cases were inserted, removed or changed, the journal moves the records after the first change
//! to this file. A run reuses the records whose key it needs and keeps the others for later runs. It also
//! keeps verdicts here that finished before those of earlier cases, until it can write them in their order.
//! No verdict is deleted. The index needs about 60 bytes of memory per record.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::judging::run::record::{Record, RecordOutcome};
use crate::support::digest::Digest;
use crate::support::files::atomic_file::replace_atomic;

/// File name of the superseded records in the output folder.
pub const SUPERSEDED_FILE: &str = "records.aside.jsonl";

/// Superseded records, indexed by key.
#[derive(Debug)]
pub struct SupersededRecords {
    path: PathBuf,
    file: Option<File>,
    index: HashMap<Digest, SupersededEntry>,
}

#[derive(Clone, Copy, Debug)]
struct SupersededEntry {
    /// Byte offset of the line.
    offset: u64,
    /// Length of the line in bytes.
    length: u64,
    /// True if the journal has a record with this key.
    used: bool,
}

impl SupersededRecords {
    /// Opens the superseded records of a folder, if there are any.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(SUPERSEDED_FILE);
        let mut superseded = Self { path, file: None, index: HashMap::new() };
        if superseded.path.exists() {
            superseded.load()?;
        }
        Ok(superseded)
    }

    /// Returns the number of unused verdicts.
    pub fn len(&self) -> usize {
        self.index.values().filter(|entry| !entry.used).count()
    }

    /// Returns true if there is no unused verdict.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Marks a key as present in the journal.
    pub fn mark_used(&mut self, key: &Digest) {
        if let Some(entry) = self.index.get_mut(key) {
            entry.used = true;
        }
    }

    /// Returns the outcome of a key and marks it as used.
    pub fn lookup(&mut self, key: &Digest) -> anyhow::Result<Option<RecordOutcome>> {
        let (Some(entry), Some(file)) = (self.index.get_mut(key), &mut self.file) else {
            return Ok(None);
        };
        let mut line = Vec::new();
        let read = file.seek(SeekFrom::Start(entry.offset));
        read.and_then(|_| Read::by_ref(file).take(entry.length).read_to_end(&mut line))
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        entry.used = true;
        Ok(serde_json::from_slice::<Record>(&line).ok().map(|record| record.outcome))
    }

    /// Adds all lines of a reader, except records that a later run cannot reuse. Lines that are not
    /// records are kept.
    pub fn import(&mut self, reader: &mut impl BufRead) -> anyhow::Result<()> {
        let existing = self.path.exists().then(|| File::open(&self.path)).transpose();
        let existing = existing.with_context(|| format!("cannot read {}", self.path.display()))?;
        let mut kept = existing.is_some();
        self.replace(|out| {
            if let Some(mut existing) = existing {
                std::io::copy(&mut existing, out)?;
            }
            for_each_line(reader, |line, _| match serde_json::from_slice::<Record>(line) {
                Ok(record) if !record.is_reusable() => Ok(()),
                _ => {
                    kept = true;
                    out.write_all(line)
                }
            })
        })?;
        if !kept {
            return self.remove();
        }
        self.load()
    }

    fn remove(&self) -> anyhow::Result<()> {
        fs::remove_file(&self.path)
            .with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Adds a record that cannot be written to the journal yet, if a later run can reuse it. It must not be
    /// here already.
    pub fn add(&mut self, record: &Record) -> anyhow::Result<()> {
        let Some(key) = record.subject.key.filter(|_| record.is_reusable()) else {
            return Ok(());
        };
        let line = record.to_line()?;
        let offset = self.append(line.as_bytes());
        let offset = offset.with_context(|| format!("cannot write {}", self.path.display()))?;
        let length = line.len() as u64;
        self.index.insert(key, SupersededEntry { offset, length, used: false });
        Ok(())
    }

    /// Returns true if a record with this key is here.
    pub fn contains(&self, key: &Digest) -> bool {
        self.index.contains_key(key)
    }

    /// Syncs added records to disk.
    pub fn sync(&self) -> anyhow::Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_data);
        synced.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Appends a line to the file. Returns the offset of the line.
    fn append(&mut self, line: &[u8]) -> std::io::Result<u64> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&self.path)?;
        let mut end = file.seek(SeekFrom::End(0))?;
        if end > 0 {
            // The process may have been killed while it wrote the last line.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                end += 1;
            }
        }
        file.write_all(line)?;
        self.file = Some(file);
        Ok(end)
    }

    /// Removes the records that the journal has too.
    pub fn retain_unused(&mut self) -> anyhow::Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        file.rewind().with_context(|| format!("cannot read {}", self.path.display()))?;
        if self.index.values().any(|entry| entry.used) {
            let index = std::mem::take(&mut self.index);
            let mut remaining = 0_u64;
            self.replace(|out| {
                for_each_line(&mut BufReader::new(&file), |line, _| {
                    let key =
                        serde_json::from_slice::<Record>(line).ok().and_then(|r| r.subject.key);
                    if key.and_then(|key| index.get(&key)).is_some_and(|entry| entry.used) {
                        return Ok(());
                    }
                    remaining += 1;
                    out.write_all(line)
                })
            })?;
            if remaining == 0 {
                return self.remove();
            }
        }
        self.load()
    }

    /// Replaces the file atomically.
    fn replace(
        &self,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        replace_atomic(&self.path, write)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Opens the file and indexes its records. Keys that are marked as used stay marked.
    fn load(&mut self) -> anyhow::Result<()> {
        let used: Vec<Digest> =
            self.index.drain().filter(|(_, entry)| entry.used).map(|(key, _)| key).collect();
        let mut attempt = || -> std::io::Result<()> {
            let file = File::open(&self.path)?;
            for_each_line(&mut BufReader::new(&file), |line, offset| {
                let entry = SupersededEntry { offset, length: line.len() as u64, used: false };
                let record = serde_json::from_slice::<Record>(line).ok();
                if let Some(key) = record.filter(Record::is_reusable).and_then(|r| r.subject.key) {
                    self.index.entry(key).or_insert(entry);
                }
                Ok(())
            })?;
            self.file = Some(file);
            Ok(())
        };
        attempt().with_context(|| format!("cannot read {}", self.path.display()))?;
        for key in &used {
            self.mark_used(key);
        }
        Ok(())
    }
}

/// Calls a function with each line, including its line break, and its offset.
fn for_each_line(
    reader: &mut impl BufRead,
    mut call: impl FnMut(&[u8], u64) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let (mut line, mut offset) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        call(&line, offset)?;
        offset += read as u64;
    }
}

//! `records.aside.jsonl`: verdicts that the present input does not ask for, or not in this place.
//!
//! When cases were inserted, removed or changed, the records after that point leave the journal
//! and wait here. Those whose key is asked for go back; the others stay for a later run. No
//! verdict is ever deleted. The index of this file is the only thing a run holds in memory per
//! record (about 60 bytes), and only in this unusual case.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::judging::run::record::{Record, RecordOutcome};
use crate::support::digest::Digest;

/// The name of the file of verdicts set aside in the folder of a run.
pub const ASIDE: &str = "records.aside.jsonl";

/// The verdicts that were set aside, by key.
#[derive(Debug)]
pub struct SupersededRecords {
    path: PathBuf,
    file: Option<File>,
    index: HashMap<Digest, SupersededEntry>,
}

#[derive(Clone, Copy, Debug)]
struct SupersededEntry {
    offset: u64,
    length: u64,
    /// True once the journal has a record of this key.
    used: bool,
}

impl SupersededRecords {
    /// Opens what was set aside in a folder, if anything was.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(ASIDE);
        let mut aside = Self {
            path,
            file: None,
            index: HashMap::new(),
        };
        if aside.path.exists() {
            aside.load()?;
        }
        Ok(aside)
    }

    /// How many verdicts are set aside and not used.
    pub fn len(&self) -> usize {
        self.index.values().filter(|slot| !slot.used).count()
    }

    /// True if nothing is set aside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that the journal has a record of this key.
    pub fn used(&mut self, key: &Digest) {
        if let Some(slot) = self.index.get_mut(key) {
            slot.used = true;
        }
    }

    /// The outcome of a key, if it was set aside.
    pub fn recall(&mut self, key: &Digest) -> anyhow::Result<Option<RecordOutcome>> {
        let (Some(slot), Some(file)) = (self.index.get_mut(key), &mut self.file) else {
            return Ok(None);
        };
        let mut line = Vec::new();
        let read = file.seek(SeekFrom::Start(slot.offset));
        read.and_then(|_| Read::by_ref(file).take(slot.length).read_to_end(&mut line))
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        slot.used = true;
        Ok(serde_json::from_slice::<Record>(&line)
            .ok()
            .map(|record| record.outcome))
    }

    /// Adds all lines of a reader to what is set aside. What holds no verdict of the judge is left
    /// out (it is found again at no cost), but a line that is no record is kept.
    pub fn take_in(&mut self, reader: &mut impl BufRead) -> anyhow::Result<()> {
        let old = self
            .path
            .exists()
            .then(|| File::open(&self.path))
            .transpose();
        let old = old.with_context(|| format!("cannot read {}", self.path.display()))?;
        self.replace(|out| {
            if let Some(mut old) = old {
                std::io::copy(&mut old, out)?;
            }
            each_line(reader, |line, _| {
                match serde_json::from_slice::<Record>(line) {
                    Ok(record) if !record.is_settled() => Ok(()),
                    _ => out.write_all(line),
                }
            })
        })?;
        self.load()
    }

    /// Leaves only what the journal does not have.
    pub fn settle(&mut self) -> anyhow::Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        file.rewind()
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        if self.index.values().any(|slot| slot.used) {
            let index = std::mem::take(&mut self.index);
            let mut left = 0_u64;
            self.replace(|out| {
                each_line(&mut BufReader::new(&file), |line, _| {
                    let key = serde_json::from_slice::<Record>(line)
                        .ok()
                        .and_then(|r| r.subject.key);
                    if key
                        .and_then(|key| index.get(&key))
                        .is_some_and(|slot| slot.used)
                    {
                        return Ok(());
                    }
                    left += 1;
                    out.write_all(line)
                })
            })?;
            if left == 0 {
                fs::remove_file(&self.path)
                    .with_context(|| format!("cannot remove {}", self.path.display()))?;
                return Ok(());
            }
        }
        self.load()
    }

    /// Writes the file anew beside the old one, which is replaced at once or not at all.
    fn replace(
        &self,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        let fresh = self.path.with_extension("tmp");
        let attempt = || {
            let mut out = BufWriter::new(File::create(&fresh)?);
            write(&mut out)?;
            out.flush()?;
            out.get_ref().sync_data()?;
            fs::rename(&fresh, &self.path)
        };
        attempt().with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn load(&mut self) -> anyhow::Result<()> {
        let used: Vec<Digest> = self
            .index
            .drain()
            .filter(|(_, slot)| slot.used)
            .map(|(key, _)| key)
            .collect();
        let mut attempt = || -> std::io::Result<()> {
            let file = File::open(&self.path)?;
            each_line(&mut BufReader::new(&file), |line, offset| {
                let slot = SupersededEntry {
                    offset,
                    length: line.len() as u64,
                    used: false,
                };
                let record = serde_json::from_slice::<Record>(line).ok();
                if let Some(key) = record
                    .filter(Record::is_settled)
                    .and_then(|r| r.subject.key)
                {
                    self.index.entry(key).or_insert(slot);
                }
                Ok(())
            })?;
            self.file = Some(file);
            Ok(())
        };
        attempt().with_context(|| format!("cannot read {}", self.path.display()))?;
        for key in &used {
            self.used(key);
        }
        Ok(())
    }
}

/// Calls a function with each line and its offset; a line keeps its break.
fn each_line(
    reader: &mut impl BufRead,
    mut each: impl FnMut(&[u8], u64) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let (mut line, mut offset) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        each(&line, offset)?;
        offset += read as u64;
    }
}

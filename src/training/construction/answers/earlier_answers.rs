//! Answers that the current input does not need at their position: those after an inserted, removed or
//! changed question, or after one that is asked again. Also answers that wait for those of earlier
//! questions.
//!
//! They are in a file next to the answers until a run needs them. No answer is deleted.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::answer_record::AnswerRecord;
use crate::support::digest::Digest;
use crate::support::files::atomic_file::write_chunks_atomic;

/// Answers that have no place in the answers file yet, by key. They are in memory.
#[derive(Debug)]
pub(super) struct EarlierAnswers {
    path: PathBuf,
    answers: HashMap<Digest, EarlierAnswer>,
}

#[derive(Debug)]
struct EarlierAnswer {
    record: AnswerRecord,
    /// Order of its line.
    order: usize,
    /// True if the answers file has it.
    is_written: bool,
}

impl EarlierAnswers {
    /// Opens the earlier answers of an answers file: `a.earlier` for `a.jsonl`. Lines that cannot be
    /// read are ignored: a kill can tear only the last one.
    pub(super) fn open(answers: &Path) -> Result<Self> {
        let path = answers.with_extension("earlier");
        let mut earlier = Self { path, answers: HashMap::new() };
        if earlier.path.exists() {
            let context = || format!("cannot read {}", earlier.path.display());
            let file = File::open(&earlier.path).with_context(context)?;
            let records = earlier.read_records(&mut BufReader::new(file))?;
            earlier.insert(records);
        }
        Ok(earlier)
    }

    fn read_records(&self, reader: &mut impl BufRead) -> Result<Vec<AnswerRecord>> {
        let mut records = Vec::new();
        loop {
            let mut line = Vec::new();
            let read = reader.read_until(b'\n', &mut line);
            if read.with_context(|| format!("cannot read {}", self.path.display()))? == 0 {
                return Ok(records);
            }
            records.extend(AnswerRecord::parse(&line).filter(|_| line.ends_with(b"\n")));
        }
    }

    /// Adds the records that can be reused to those in memory.
    fn insert(&mut self, records: Vec<AnswerRecord>) {
        for record in records.into_iter().filter(|record| record.outcome.is_reusable()) {
            let (order, key) = (self.answers.len(), record.key);
            self.answers.insert(key, EarlierAnswer { record, order, is_written: false });
        }
    }

    /// Adds the answers of the rest of a file, and writes them to disk before it returns.
    pub(super) fn import(&mut self, reader: &mut impl BufRead) -> Result<()> {
        let records = self.read_records(reader)?;
        self.add(records)
    }

    /// Adds the answers that can be reused, and writes them to disk before it returns.
    pub(super) fn add(&mut self, records: Vec<AnswerRecord>) -> Result<()> {
        let new = records.iter().filter(|record| {
            record.outcome.is_reusable() && !self.answers.contains_key(&record.key)
        });
        let lines: String = new.map(AnswerRecord::to_line).collect::<Result<_>>()?;
        if !lines.is_empty() {
            let context = || {
                let path = self.path.display();
                format!("cannot write {path}\nhint: check free space and write permissions")
            };
            let options = || File::options().append(true).create(true).open(&self.path);
            let mut file = options().with_context(context)?;
            // A kill may have left a torn line.
            file.write_all(b"\n").with_context(context)?;
            file.write_all(lines.as_bytes()).with_context(context)?;
            file.sync_data().with_context(context)?;
        }
        self.insert(records);
        Ok(())
    }

    /// Returns the answer with a key.
    pub(super) fn find(&self, key: &Digest) -> Option<&AnswerRecord> {
        self.answers.get(key).map(|answer| &answer.record)
    }

    /// Notes that the answers file has this record.
    pub(super) fn mark_written(&mut self, record: &AnswerRecord) {
        if let Some(answer) = self.answers.get_mut(&record.key)
            && record.outcome.is_reusable()
        {
            answer.is_written = true;
        }
    }

    /// Returns the answers that the answers file does not have.
    pub(super) fn unwritten(&self) -> impl Iterator<Item = &AnswerRecord> {
        let mut unwritten: Vec<&EarlierAnswer> =
            self.answers.values().filter(|answer| !answer.is_written).collect();
        unwritten.sort_by_key(|answer| answer.order);
        unwritten.into_iter().map(|answer| &answer.record)
    }

    /// Rewrites the file without the used answers. Deletes it if nothing is left.
    pub(super) fn retain_unwritten(&self) -> Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        let lines: Result<Vec<String>> = self.unwritten().map(AnswerRecord::to_line).collect();
        let lines = lines?;
        if lines.is_empty() {
            return fs::remove_file(&self.path)
                .with_context(|| format!("cannot remove {}", self.path.display()));
        }
        write_chunks_atomic(&self.path, lines.iter().map(|line| Ok(line.as_bytes())))
    }
}

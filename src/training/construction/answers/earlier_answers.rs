//! Answers that the current input does not need at their position: those after an inserted, removed or
//! changed question, or after one that is asked again.
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

/// Answers of earlier commands, by key. They are in memory.
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
    is_used: bool,
}

impl EarlierAnswers {
    /// Opens the earlier answers of an answers file: `a.earlier` for `a.jsonl`. Lines that cannot be
    /// read are ignored: a kill can tear only the last one, whose answer is still in the answers file.
    pub(super) fn open(answers: &Path) -> Result<Self> {
        let path = answers.with_extension("earlier");
        let mut earlier = Self { path, answers: HashMap::new() };
        if earlier.path.exists() {
            let context = || format!("cannot read {}", earlier.path.display());
            let file = File::open(&earlier.path).with_context(context)?;
            earlier.add_lines(&mut BufReader::new(file))?;
        }
        Ok(earlier)
    }

    fn add_lines(&mut self, reader: &mut impl BufRead) -> Result<Vec<Vec<u8>>> {
        let mut added = Vec::new();
        loop {
            let mut line = Vec::new();
            let read = reader.read_until(b'\n', &mut line);
            if read.with_context(|| format!("cannot read {}", self.path.display()))? == 0 {
                return Ok(added);
            }
            let record = AnswerRecord::parse(&line).filter(|_| line.ends_with(b"\n"));
            let Some(record) = record.filter(|record| record.outcome.is_reusable()) else {
                continue;
            };
            let order = self.answers.len();
            let key = record.key;
            let answer = EarlierAnswer { record, order, is_used: false };
            if self.answers.insert(key, answer).is_none() {
                added.push(line);
            }
        }
    }

    /// Adds the answers of the rest of a file, and writes them to disk before it returns.
    pub(super) fn import(&mut self, reader: &mut impl BufRead) -> Result<()> {
        let added = self.add_lines(reader)?;
        if added.is_empty() {
            return Ok(());
        }
        let context = || {
            let path = self.path.display();
            format!("cannot write {path}\nhint: check free space and write permissions")
        };
        let options = || File::options().append(true).create(true).open(&self.path);
        let mut file = options().with_context(context)?;
        // A kill may have left a torn line.
        file.write_all(b"\n").with_context(context)?;
        file.write_all(&added.concat()).with_context(context)?;
        file.sync_data().with_context(context)
    }

    /// Returns the answer with a key.
    pub(super) fn find(&mut self, key: &Digest) -> Option<&AnswerRecord> {
        let answer = self.answers.get_mut(key)?;
        answer.is_used = true;
        Some(&answer.record)
    }

    /// Returns the answers that no question needed.
    pub(super) fn unused(&self) -> impl Iterator<Item = &AnswerRecord> {
        let mut unused: Vec<&EarlierAnswer> =
            self.answers.values().filter(|answer| !answer.is_used).collect();
        unused.sort_by_key(|answer| answer.order);
        unused.into_iter().map(|answer| &answer.record)
    }

    /// Returns all answers.
    pub(super) fn records(&self) -> impl Iterator<Item = &AnswerRecord> {
        self.answers.values().map(|answer| &answer.record)
    }

    /// Rewrites the file without the used answers. Deletes it if nothing is left.
    pub(super) fn retain_unused(&self) -> Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        let lines: Result<Vec<String>> = self.unused().map(AnswerRecord::to_line).collect();
        let lines = lines?;
        if lines.is_empty() {
            return fs::remove_file(&self.path)
                .with_context(|| format!("cannot remove {}", self.path.display()));
        }
        write_chunks_atomic(&self.path, lines.iter().map(|line| Ok(line.as_bytes())))
    }
}

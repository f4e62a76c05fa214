//! Reads the lines of all shards, one after the other, and checks each.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader};

use acem3_experts::prompt::Form;
use anyhow::{Context as _, Result, anyhow, bail, ensure};

use super::shard_set::{ShardRun, ShardSet};
use crate::judging::run::manifest::RunStatus;
use crate::judging::run::record::checksum::{FileChecksum, LineState, check_line};
use crate::judging::run::record::{RECORDS, Record, SCHEMA};
use crate::judging::run::run_state::JUDGE_AGAIN;
use crate::judging::run::summary::tally::{Origin, Tally};
use crate::support::digest::Digest;
use crate::support::files::regular_file;

/// The lines of the shards in their order, with line breaks.
pub struct JoinedRecords<'a> {
    runs: std::slice::Iter<'a, ShardRun>,
    current: Option<OpenShard<'a>>,
    checksum: FileChecksum,
    tally: Tally,
    form: Form,
    /// The shard of each judged case, by a hash of its id.
    shards: HashMap<u64, u64>,
    has_failed: bool,
}

/// The records of a shard that is being read.
struct OpenShard<'a> {
    run: &'a ShardRun,
    reader: BufReader<File>,
    checksum: FileChecksum,
}

impl<'a> JoinedRecords<'a> {
    /// Creates the iterator over the lines of these runs.
    pub fn new(runs: &'a [ShardRun]) -> Self {
        Self {
            runs: runs.iter(),
            current: None,
            checksum: FileChecksum::default(),
            tally: Tally::default(),
            form: Form::default(),
            shards: HashMap::new(),
            has_failed: false,
        }
    }

    /// Returns the digest of the lines so far.
    pub fn digest(&self) -> Digest {
        self.checksum.digest()
    }

    /// Returns the form of judging.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the counts and sums of the lines so far. Counts of the input are those of the runs.
    pub fn tally(self, set: &ShardSet) -> Tally {
        let mut tally = self.tally;
        for run in &set.runs {
            let counts = &run.manifest.counts;
            // A run that was killed has written no counts.
            let is_counted = run.manifest.status != RunStatus::Running;
            let in_records =
                || self.shards.values().filter(|shard| **shard == run.info.index).count();
            tally.counts.cases += if is_counted { counts.cases } else { in_records() as u64 };
            tally.counts.unreadable += counts.unreadable;
            tally.counts.left_out += counts.left_out;
            tally.counts.reused += counts.reused;
        }
        tally
    }

    /// Reads the next line; `None` after the last one.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            let Some(mut shard) = self.current.take() else {
                let Some(run) = self.runs.next() else { return Ok(None) };
                self.current = Some(OpenShard::open(run)?);
                continue;
            };
            if let Some((line, record)) = shard.next_line()? {
                self.add(&record, shard.run)?;
                if let LineState::Intact(checksum) = check_line(&line) {
                    self.checksum.add(checksum);
                }
                self.current = Some(shard);
                return Ok(Some(line));
            }
            shard.check_end()?;
        }
    }

    /// Counts a record, and checks that its case is in one shard.
    fn add(&mut self, record: &Record, run: &ShardRun) -> Result<()> {
        self.form = record.subject.form;
        self.tally.add(record, Origin::Judge);
        let Some(case) = record.subject.case.as_ref().filter(|_| record.verdict().is_some()) else {
            return Ok(());
        };
        let mut hasher = DefaultHasher::new();
        case.hash(&mut hasher);
        let index = run.info.index;
        let first = *self.shards.entry(hasher.finish()).or_insert(index);
        ensure!(
            first == index,
            "{}: case {case} is also in shard {first}, expected each case in one shard\n\
             hint: judge the shards again in new folders",
            run.folder.display()
        );
        Ok(())
    }
}

impl Iterator for JoinedRecords<'_> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let line = self.next_line().transpose()?;
        self.has_failed = line.is_err();
        Some(line)
    }
}

impl<'a> OpenShard<'a> {
    fn open(run: &'a ShardRun) -> Result<Self> {
        let path = run.folder.join(RECORDS);
        let context = || format!("cannot read {}", path.display());
        let file = regular_file::open(&path).with_context(context)?;
        let reader = BufReader::with_capacity(1 << 20, file);
        Ok(Self { run, reader, checksum: FileChecksum::default() })
    }

    /// Reads and checks the next line. Leaves out a torn last line of an unfinished run.
    fn next_line(&mut self) -> Result<Option<(Vec<u8>, Record)>> {
        let path = self.run.folder.join(RECORDS);
        let mut line = Vec::new();
        let read = self.reader.read_until(b'\n', &mut line);
        let is_torn = read.with_context(|| format!("cannot read {}", path.display()))? > 0
            && !line.ends_with(b"\n");
        if line.is_empty() || (is_torn && !self.run.is_complete()) {
            return Ok(None);
        }
        let number = self.checksum.lines() + 1;
        let damaged = |problem: &str| {
            anyhow!("{} line {number}: {problem}\nhint: {JUDGE_AGAIN}", path.display())
        };
        match check_line(&line) {
            LineState::Intact(checksum) => self.checksum.add(checksum),
            LineState::Unchecked => return Err(damaged("a record without checksum")),
            LineState::Changed => return Err(damaged("the checksum does not match")),
        }
        if is_torn {
            return Err(damaged("the line is incomplete"));
        }
        let record: Record =
            serde_json::from_slice(&line).map_err(|e| damaged(&format!("not a record, {e}")))?;
        if record.schema > SCHEMA {
            bail!(
                "{} line {number}: written by a newer version\nhint: update acem3",
                path.display()
            );
        }
        if record.subject.judge != self.run.manifest.judge_sha256.short_hex() {
            return Err(damaged("a record of another judge than that in run.json"));
        }
        Ok(Some((line, record)))
    }

    /// Checks that the lines are those that the finished run wrote.
    fn check_end(&self) -> Result<()> {
        let manifest = &self.run.manifest;
        if !self.run.is_complete() {
            return Ok(());
        }
        let (found, expected) = (self.checksum.lines(), manifest.counts.records);
        let is_same = manifest.records_digest == Some(self.checksum.digest());
        ensure!(
            found == expected && is_same,
            "{}: not the records that the run of {} wrote ({found} found, {expected} expected{})\n\
             hint: {JUDGE_AGAIN}, which restores removed and moved records; judge edited ones again \
             with another --out",
            self.run.folder.join(RECORDS).display(),
            self.run.info,
            if found == expected { ", some exchanged, moved or edited" } else { "" }
        );
        Ok(())
    }
}

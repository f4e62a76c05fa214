//! `records.jsonl`: an append-only journal that a run can resume.
//!
//! On opening, damaged lines move to another file ([`damaged`]), so that their cases are judged again.
//!
//! The finished file has one record per pair in input order. Interrupted and uninterrupted runs write
//! the same bytes.
//!
//! A resumed run *replays* the file: it compares each line with the record of the current input, and
//! stops at the first difference. It then moves the remaining lines to the superseded records
//! ([`superseded`]), truncates the file at this line, and appends new records. It reuses superseded
//! verdicts if their key matches. A replay holds one line in memory.

pub mod damaged;
mod repair;
pub mod superseded;

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::judging::provenance::Provenance;
use crate::judging::run::journal::repair::Repair;
use crate::judging::run::journal::superseded::SupersededRecords;
use crate::judging::run::record::damage::Damage;
use crate::judging::run::record::{Record, RecordOutcome};
use crate::judging::run::replay::{Replay, records_digest};
use crate::support::digest::Digest;
use crate::support::files::atomic_file::remove_temporary_files;
use crate::support::files::folder::FolderLock;
use crate::support::terminal::exit::RunFailure;

pub use crate::judging::run::record::RECORDS;

/// The records of a run, open for one writer.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    replay: Option<Replay>,
    superseded: SupersededRecords,
    /// What was repaired on opening.
    repair: Repair,
    /// Number of records before the first difference from the earlier run.
    diverged_after: Option<u64>,
    /// Locked until the journal is dropped.
    _lock: FolderLock,
}

/// Why a replay ends before the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplayEnd {
    /// The next record has no verdict of the judge, so it is judged again.
    Repeats,
    /// The next record is one of other input.
    Differs,
}

impl Journal {
    /// Opens the records in an existing folder for the judge with this provenance. Moves damaged
    /// lines to another file.
    ///
    /// # Errors
    ///
    /// Another run writes to the folder, or the records belong to another judge or program.
    pub fn open(folder: &Path, provenance: &Provenance) -> anyhow::Result<Self> {
        let lock = FolderLock::acquire(folder)?;
        remove_temporary_files(folder)?;
        let path = folder.join(RECORDS);
        let context = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        options.open(&path).with_context(context)?;
        let repair = Repair::of(folder, provenance)?;
        // The repair can replace the file.
        let file = options.open(&path).with_context(context)?;
        let replay = Replay::open(&path).with_context(context)?;
        let superseded = SupersededRecords::open(folder)?;
        Ok(Self {
            path,
            file,
            replay: Some(replay),
            superseded,
            repair,
            diverged_after: None,
            _lock: lock,
        })
    }

    /// Returns the path of the records.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the damaged lines that were moved to another file on opening.
    pub fn damage(&self) -> &Damage {
        &self.repair.damage
    }

    /// Describes the repair on opening, one note per line, for the user.
    pub fn describe_repair(&self) -> Vec<String> {
        self.repair.describe(&self.path)
    }

    /// Returns the digest of the checksums of all records in the file.
    pub fn records_digest(&self) -> anyhow::Result<Digest> {
        records_digest(&self.path).with_context(|| self.failure("read"))
    }

    /// Returns the number of superseded verdicts.
    pub fn superseded_count(&self) -> usize {
        self.superseded.len()
    }

    /// Returns the number of records after which the earlier run diverged. Later calls return
    /// `None`.
    pub fn take_divergence(&mut self) -> Option<u64> {
        self.diverged_after.take()
    }

    /// Returns the reusable outcome of an earlier run for a key.
    pub fn lookup(&mut self, key: &Digest) -> anyhow::Result<Option<RecordOutcome>> {
        if let Some(replay) = &self.replay {
            let record = replay.parse_record().filter(|r| r.subject.key == Some(*key));
            match record {
                Some(record) if record.is_reusable() => {
                    self.superseded.mark_used(key);
                    return Ok(Some(record.outcome));
                }
                // The input is that of the earlier run, which had no result here.
                Some(_) => self.end_replay(ReplayEnd::Repeats)?,
                None => self.end_replay(ReplayEnd::Differs)?,
            }
        }
        self.superseded.lookup(key)
    }

    /// Saves a finished record that cannot be appended yet, because earlier ones are not finished. If
    /// the run stops, the next one reuses it.
    pub fn set_aside(&mut self, record: &Record) -> anyhow::Result<()> {
        self.superseded.add(record).with_context(|| self.failure("write"))
    }

    /// Returns true if a record with this key was set aside.
    pub fn is_set_aside(&self, key: &Digest) -> bool {
        self.superseded.contains(key)
    }

    /// Appends the next record, unless the file already has it at this position.
    pub fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        if let Some(key) = &record.subject.key {
            self.superseded.mark_used(key);
        }
        let line = record.to_line()?;
        if let Some(replay) = &mut self.replay {
            if replay.line == line.as_bytes() {
                return replay.advance().with_context(|| self.failure("read"));
            }
            self.end_replay(ReplayEnd::Differs)?;
        }
        self.file.write_all(line.as_bytes()).with_context(|| self.failure("write"))
    }

    /// Syncs the file to disk.
    pub fn sync(&mut self) -> anyhow::Result<()> {
        if self.replay.is_some() {
            return Ok(());
        }
        self.superseded.sync().with_context(|| self.failure("write"))?;
        self.file.sync_data().with_context(|| self.failure("write"))
    }

    /// Finishes a run that has read all its input. The remaining earlier records become superseded.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        self.end_replay(ReplayEnd::Differs)?;
        self.sync()?;
        self.superseded.retain_unused()
    }

    /// Ends the replay at the current line: moves the rest of the file to the superseded records.
    fn end_replay(&mut self, end: ReplayEnd) -> anyhow::Result<()> {
        let Some(mut replay) = self.replay.take() else {
            return Ok(());
        };
        if replay.line.is_empty() {
            return Ok(());
        }
        replay.reader.seek(SeekFrom::Start(replay.offset)).with_context(|| self.failure("read"))?;
        // Copy before truncating, so that each verdict is in one of the files at any time.
        self.superseded.import(&mut replay.reader)?;
        self.file.set_len(replay.offset).with_context(|| self.failure("write"))?;
        // Damaged lines are missing from the file; the input may be the same.
        let diverged = end == ReplayEnd::Differs && self.repair.damage.is_empty();
        self.diverged_after = diverged.then_some(replay.matched_lines);
        Ok(())
    }

    fn failure(&self, verb: &str) -> RunFailure {
        RunFailure(format!(
            "cannot {verb} {}\nhint: finished verdicts are safe; run the same command again to resume",
            self.path.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use acem3_experts::prompt::Form;

    use super::*;
    use crate::data::cases::UnscoredReason;
    use crate::judging::judge::Unscored;
    use crate::judging::provenance::{KeyInput, judge_digest, verdict_key};
    use crate::judging::run::journal::superseded::SUPERSEDED_FILE;
    use crate::judging::run::record::RecordSubject;

    fn provenance() -> Provenance {
        [("panel".to_owned(), "p".to_owned())].into()
    }

    /// Creates a record of a case that the judge refused. Such an outcome is reusable.
    fn record(case: &str, question: &str) -> Record {
        let judge = judge_digest(&provenance());
        let responses = &["a", "b"];
        let key_input = KeyInput { question, responses, reference: None, image: None };
        let subject = RecordSubject {
            case: Some(case.to_owned()),
            form: Form::Pair,
            pair: None,
            models: Vec::new(),
            unlisted_pairs: None,
            line: 1,
            file: None,
            image: None,
            question: Some(question.to_owned()),
            responses: None,
            reference: None,
            labels: None,
            meta: serde_json::Map::new(),
            extra: serde_json::Map::new(),
            judge: judge.short_hex(),
            key: Some(verdict_key(&judge, &key_input)),
        };
        let unscored = Unscored::new(UnscoredReason::Refused, format!("to {question}"));
        Record::new(subject, RecordOutcome::Unscored(unscored))
    }

    /// Appends these records to the journal of a folder. Returns the number of reused outcomes.
    fn run_with(folder: &Path, records: &[Record], finish: bool) -> usize {
        let mut journal = Journal::open(folder, &provenance()).unwrap();
        let mut reused = 0;
        for record in records {
            let earlier = journal.lookup(&record.subject.key.unwrap()).unwrap();
            if let Some(outcome) = earlier {
                assert_eq!(outcome, record.outcome);
                reused += 1;
            }
            journal.append(record).unwrap();
        }
        if finish {
            journal.finish().unwrap();
        }
        reused
    }

    fn records_text(folder: &Path) -> String {
        fs::read_to_string(folder.join(RECORDS)).unwrap()
    }

    fn superseded_text(folder: &Path) -> String {
        fs::read_to_string(folder.join(SUPERSEDED_FILE)).unwrap()
    }

    fn lines(records: &[Record]) -> String {
        records.iter().map(|r| r.to_line().unwrap()).collect()
    }

    #[test]
    fn resumes_after_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let all = ["1", "2", "3"].map(|n| record(n, n));
        let complete = lines(&all);
        for length in (0..complete.len()).step_by(29).chain([complete.len() - 1]) {
            fs::write(dir.path().join(RECORDS), &complete[..length]).unwrap();
            // A line that lacks only its line break is complete.
            let reused = complete[..length].matches("\"}").count();
            assert_eq!(run_with(dir.path(), &all, true), reused, "cut at {length}");
            assert_eq!(records_text(dir.path()), complete, "cut at {length}");
            assert!(!dir.path().join(SUPERSEDED_FILE).exists());
        }
    }

    #[test]
    fn changed_input_reuses_matching_records_and_loses_none() {
        let dir = tempfile::tempdir().unwrap();
        let old = ["1", "2", "3", "4"].map(|n| record(n, n));
        assert_eq!(run_with(dir.path(), &old, true), 0);
        // Insert one record, rename one and remove one.
        let new = [record("1", "1"), record("new", "5"), record("renamed", "3"), record("4", "4")];
        assert_eq!(run_with(dir.path(), &new, true), 3);
        assert_eq!(records_text(dir.path()), lines(&new));
        assert_eq!(superseded_text(dir.path()), lines(&old[1..2]));
        // The first input again: all outcomes are reused from both files.
        assert_eq!(run_with(dir.path(), &old, true), 4);
        assert_eq!(records_text(dir.path()), lines(&old));
        assert_eq!(superseded_text(dir.path()), lines(&new[1..2]));
    }

    #[test]
    fn interruption_within_a_changed_input_loses_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let old = ["1", "2", "3", "4"].map(|n| record(n, n));
        run_with(dir.path(), &old, true);
        let new = [record("new", "5"), old[0].clone(), old[2].clone(), old[3].clone()];
        assert_eq!(run_with(dir.path(), &new[..2], false), 1);
        assert_eq!(run_with(dir.path(), &new, true), 4);
        assert_eq!(records_text(dir.path()), lines(&new));
        assert_eq!(superseded_text(dir.path()), lines(&old[1..2]));
    }

    #[test]
    fn shorter_input_keeps_the_other_records_as_superseded() {
        let dir = tempfile::tempdir().unwrap();
        let all = ["1", "2", "3"].map(|n| record(n, n));
        run_with(dir.path(), &all, true);
        assert_eq!(run_with(dir.path(), &all[..1], true), 1);
        assert_eq!(records_text(dir.path()), lines(&all[..1]));
        assert_eq!(run_with(dir.path(), &all, true), 3);
        assert_eq!(records_text(dir.path()), lines(&all));
        assert!(!dir.path().join(SUPERSEDED_FILE).exists());
    }

    #[test]
    fn damaged_line_loses_only_its_own_record() {
        let dir = tempfile::tempdir().unwrap();
        let all = ["1", "2", "3"].map(|n| record(n, n));
        fs::write(dir.path().join(RECORDS), lines(&all).replace("to 2", "\u{0}")).unwrap();
        assert_eq!(run_with(dir.path(), &all, true), 2);
        assert_eq!(records_text(dir.path()), lines(&all));
    }

    #[test]
    fn records_of_another_judge_or_program_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        run_with(dir.path(), &[record("1", "1")], true);
        let other = [("panel".to_owned(), "q".to_owned())].into();
        let error = Journal::open(dir.path(), &other).unwrap_err().to_string();
        assert!(error.contains("another judge") && error.contains("-2"), "{error}");
        for foreign in ["{\"id\": 1}\n", "{\"id\": 1}", "{\"id\": 1}\n{\"id\"", "notes"] {
            fs::write(dir.path().join(RECORDS), foreign).unwrap();
            let error = Journal::open(dir.path(), &provenance()).unwrap_err().to_string();
            assert!(error.contains("line 1: not a record"), "{error}");
            assert_eq!(records_text(dir.path()), foreign);
        }
    }

    #[test]
    fn second_writer_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let first = Journal::open(dir.path(), &provenance()).unwrap();
        let error = Journal::open(dir.path(), &provenance()).unwrap_err().to_string();
        assert!(error.contains("another run is writing here"), "{error}");
        drop(first);
        Journal::open(dir.path(), &provenance()).unwrap();
    }
}

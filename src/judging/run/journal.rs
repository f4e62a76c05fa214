//! `records.jsonl`: appended to line by line, resumed where it stopped, never rewritten in place.
//!
//! The finished file has one record per pair in the order of the input, the same bytes whether
//! the run was interrupted or not. Resuming therefore *replays*: the records that are there are
//! compared, line by line, with what the input asks for, and the first line that would differ
//! ends the replay. What follows it is set aside (see [`crate::judging::run::superseded`]) and the file is cut there;
//! from then on records are appended, and verdicts that were set aside are used again wherever
//! their key fits. A replay holds one line in memory, however long the file is.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::judging::provenance::{Provenance, judge_digest};
use crate::judging::run::manifest;
use crate::judging::run::record::{Record, RecordOutcome, SCHEMA};
use crate::judging::run::replay::Replay;
use crate::judging::run::superseded::SupersededRecords;
use crate::judging::run::torn_line;
use crate::support::digest::Digest;
use crate::support::files::folder::{FolderLock, unused};
use crate::support::terminal::exit::EngineFailure;

/// The name of the file of records in the folder of a run.
pub const RECORDS: &str = "records.jsonl";

/// How every record begins.
const BEGINNING: &[u8] = b"{\"schema\":";

/// The records of a run, open for one writer.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    replay: Option<Replay>,
    aside: SupersededRecords,
    torn: u64,
    cut: Option<u64>,
    /// Held until the journal is dropped.
    _lock: FolderLock,
}

impl Journal {
    /// Opens the records in a folder, which must exist, for the judge of this provenance.
    ///
    /// # Errors
    ///
    /// Another run that writes there, and records of another judge or another program.
    pub fn open(folder: &Path, provenance: &Provenance) -> anyhow::Result<Self> {
        let lock = FolderLock::take(folder)?;
        let path = folder.join(RECORDS);
        let place = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .with_context(place)?;
        // Nothing is cut from a file that is not known to be this judge's.
        check_judge(
            folder,
            &Replay::open(&path).with_context(place)?.line,
            provenance,
        )?;
        let torn = torn_line::cut(&mut file).with_context(place)?;
        let replay = Replay::open(&path).with_context(place)?;
        let aside = SupersededRecords::open(folder)?;
        Ok(Self {
            path,
            file,
            replay: Some(replay),
            aside,
            torn,
            cut: None,
            _lock: lock,
        })
    }

    /// Where the records are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of an unfinished last line that were dropped on opening.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// How many earlier verdicts the run did not ask for; they are kept beside the records.
    pub fn set_aside(&self) -> usize {
        self.aside.len()
    }

    /// After how many records the earlier ones stopped to fit the input, told once.
    pub fn take_cut(&mut self) -> Option<u64> {
        self.cut.take()
    }

    /// The outcome this key had earlier, if it is settled.
    pub fn recall(&mut self, key: &Digest) -> anyhow::Result<Option<RecordOutcome>> {
        if let Some(replay) = &self.replay {
            let record = replay.record();
            if let Some(record) = record.filter(|r| r.subject.key == Some(*key) && r.is_settled()) {
                self.aside.used(key);
                return Ok(Some(record.outcome));
            }
            self.end_replay()?;
        }
        self.aside.recall(key)
    }

    /// Writes the next record, or keeps it where it already stands.
    pub fn put(&mut self, record: &Record) -> anyhow::Result<()> {
        let line = record.line()?;
        if let Some(replay) = &mut self.replay {
            if replay.line == line.as_bytes() {
                return replay.keep().with_context(|| self.failure("read"));
            }
            self.end_replay()?;
        }
        self.file
            .write_all(line.as_bytes())
            .with_context(|| self.failure("write"))
    }

    /// Makes sure that what was written survives a loss of power.
    pub fn sync(&mut self) -> anyhow::Result<()> {
        if self.replay.is_some() {
            return Ok(());
        }
        self.file.sync_data().with_context(|| self.failure("write"))
    }

    /// Ends a run that went through its whole input: what the input did not ask for is set aside.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        self.end_replay()?;
        self.sync()?;
        self.aside.settle()
    }

    /// Ends the replay at the current line; sets the rest of the file aside and cuts it off.
    fn end_replay(&mut self) -> anyhow::Result<()> {
        let Some(mut replay) = self.replay.take() else {
            return Ok(());
        };
        if replay.line.is_empty() {
            return Ok(());
        }
        replay
            .reader
            .seek(SeekFrom::Start(replay.offset))
            .with_context(|| self.failure("read"))?;
        // First copied, then cut: at no moment is a verdict in neither file.
        self.aside.take_in(&mut replay.reader)?;
        self.file
            .set_len(replay.offset)
            .with_context(|| self.failure("write"))?;
        self.cut = Some(replay.kept);
        Ok(())
    }

    fn failure(&self, verb: &str) -> EngineFailure {
        EngineFailure(format!(
            "cannot {verb} {}\nhint: what was judged is safe; the same command resumes",
            self.path.display()
        ))
    }
}

/// Refuses to add to the records of another program or judge.
fn check_judge(folder: &Path, line: &[u8], provenance: &Provenance) -> anyhow::Result<()> {
    if line.is_empty() {
        return Ok(());
    }
    let place = folder.join(RECORDS);
    let other = format!(
        "hint: name another folder, as in --out {}",
        unused(folder).display()
    );
    if !line.ends_with(b"\n") && (line.starts_with(BEGINNING) || BEGINNING.starts_with(line)) {
        // Torn before the first record was whole.
        return Ok(());
    }
    let record: Record = serde_json::from_slice(line)
        .with_context(|| format!("{} line 1: not a record\n{other}", place.display()))?;
    if record.schema > SCHEMA {
        bail!(
            "{}: written by a newer program (schema {}, this one knows {SCHEMA})\n{other}",
            place.display(),
            record.schema
        );
    }
    if record.subject.judge != judge_digest(provenance).short() {
        bail!(
            "{}: holds verdicts of another judge{}\n{other}; with the former settings this one \
             would be resumed",
            place.display(),
            manifest::differences(folder, provenance)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::cases::UnscoredReason;
    use crate::judging::judge::Unscored;
    use crate::judging::provenance::pair_key;
    use crate::judging::run::record::RecordSubject;
    use crate::judging::run::superseded::ASIDE;

    fn provenance() -> Provenance {
        [("panel".to_owned(), "p".to_owned())].into()
    }

    /// A record of a case whose judge declined, which is an outcome of the judge.
    fn record(case: &str, question: &str) -> Record {
        let judge = judge_digest(&provenance());
        let subject = RecordSubject {
            case: Some(case.to_owned()),
            pair: None,
            models: Vec::new(),
            line: 1,
            file: None,
            image: None,
            question: Some(question.to_owned()),
            responses: None,
            reference: None,
            labels: None,
            meta: serde_json::Map::new(),
            extra: serde_json::Map::new(),
            judge: judge.short(),
            key: Some(pair_key(&judge, question, ["a", "b"], None)),
        };
        let unscored = Unscored {
            reason: UnscoredReason::Refused,
            message: format!("to {question}"),
        };
        Record::new(subject, RecordOutcome::Unscored(unscored))
    }

    /// Runs over these records; gives how many outcomes were reused.
    fn go(folder: &Path, records: &[Record], finish: bool) -> usize {
        let mut journal = Journal::open(folder, &provenance()).unwrap();
        let mut reused = 0;
        for record in records {
            let earlier = journal.recall(&record.subject.key.unwrap()).unwrap();
            if let Some(outcome) = earlier {
                assert_eq!(outcome, record.outcome);
                reused += 1;
            }
            journal.put(record).unwrap();
        }
        if finish {
            journal.finish().unwrap();
        }
        reused
    }

    fn text(folder: &Path) -> String {
        fs::read_to_string(folder.join(RECORDS)).unwrap()
    }

    fn aside(folder: &Path) -> String {
        fs::read_to_string(folder.join(ASIDE)).unwrap()
    }

    fn lines(records: &[Record]) -> String {
        records.iter().map(|r| r.line().unwrap()).collect()
    }

    #[test]
    fn resumes_after_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let all = ["1", "2", "3"].map(|n| record(n, n));
        let whole = lines(&all);
        for cut in (0..whole.len()).step_by(29).chain([whole.len() - 1]) {
            fs::write(dir.path().join(RECORDS), &whole[..cut]).unwrap();
            let left = whole[..cut].matches('\n').count();
            assert_eq!(go(dir.path(), &all, true), left, "cut at {cut}");
            assert_eq!(text(dir.path()), whole, "cut at {cut}");
            assert!(!dir.path().join(ASIDE).exists());
        }
    }

    #[test]
    fn a_changed_input_reuses_what_still_fits_and_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let old = ["1", "2", "3", "4"].map(|n| record(n, n));
        assert_eq!(go(dir.path(), &old, true), 0);
        // One inserted, one renamed, one left out.
        let new = [
            record("1", "1"),
            record("new", "5"),
            record("renamed", "3"),
            record("4", "4"),
        ];
        assert_eq!(go(dir.path(), &new, true), 3);
        assert_eq!(text(dir.path()), lines(&new));
        assert_eq!(aside(dir.path()), lines(&old[1..2]));
        // Back to the first input: all is there, wherever it lay.
        assert_eq!(go(dir.path(), &old, true), 4);
        assert_eq!(text(dir.path()), lines(&old));
        assert_eq!(aside(dir.path()), lines(&new[1..2]));
    }

    #[test]
    fn an_end_in_the_middle_of_a_changed_input_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let old = ["1", "2", "3", "4"].map(|n| record(n, n));
        go(dir.path(), &old, true);
        let new = [
            record("new", "5"),
            old[0].clone(),
            old[2].clone(),
            old[3].clone(),
        ];
        assert_eq!(go(dir.path(), &new[..2], false), 1);
        assert_eq!(go(dir.path(), &new, true), 4);
        assert_eq!(text(dir.path()), lines(&new));
        assert_eq!(aside(dir.path()), lines(&old[1..2]));
    }

    #[test]
    fn a_shorter_input_keeps_the_rest_for_later() {
        let dir = tempfile::tempdir().unwrap();
        let all = ["1", "2", "3"].map(|n| record(n, n));
        go(dir.path(), &all, true);
        assert_eq!(go(dir.path(), &all[..1], true), 1);
        assert_eq!(text(dir.path()), lines(&all[..1]));
        assert_eq!(go(dir.path(), &all, true), 3);
        assert_eq!(text(dir.path()), lines(&all));
        assert!(!dir.path().join(ASIDE).exists());
    }

    #[test]
    fn damage_in_the_middle_costs_only_what_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let all = ["1", "2", "3"].map(|n| record(n, n));
        fs::write(
            dir.path().join(RECORDS),
            lines(&all).replace("to 2", "\u{0}"),
        )
        .unwrap();
        assert_eq!(go(dir.path(), &all, true), 2);
        assert_eq!(text(dir.path()), lines(&all));
    }

    #[test]
    fn another_judge_or_program_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        go(dir.path(), &[record("1", "1")], true);
        let other = [("panel".to_owned(), "q".to_owned())].into();
        let error = Journal::open(dir.path(), &other).unwrap_err().to_string();
        assert!(
            error.contains("another judge") && error.contains("-2"),
            "{error}"
        );
        for foreign in [
            "{\"id\": 1}\n",
            "{\"id\": 1}",
            "{\"id\": 1}\n{\"id\"",
            "notes",
        ] {
            fs::write(dir.path().join(RECORDS), foreign).unwrap();
            let error = Journal::open(dir.path(), &provenance())
                .unwrap_err()
                .to_string();
            assert!(error.contains("line 1: not a record"), "{error}");
            assert_eq!(text(dir.path()), foreign);
        }
    }

    #[test]
    fn one_writer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Journal::open(dir.path(), &provenance()).unwrap();
        let error = Journal::open(dir.path(), &provenance())
            .unwrap_err()
            .to_string();
        assert!(error.contains("another run is writing here"), "{error}");
        drop(first);
        Journal::open(dir.path(), &provenance()).unwrap();
    }
}

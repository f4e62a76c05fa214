//! The answers file while a run appends to it.
//!
//! The finished file has one line per question in input order; interrupted and uninterrupted runs write
//! the same questions. A resumed run *replays* the file: it compares each line with the question at its
//! position, and stops at the first difference, or at a question that is asked again. It then moves the
//! remaining answers to the earlier answers, and reuses them by their keys.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::answer_file::{AnswerFileScan, other_settings};
use super::answer_record::{AnswerOutcome, AnswerRecord};
use super::answer_settings::AnswerSettings;
use super::earlier_answers::EarlierAnswers;
use crate::support::digest::Digest;
use crate::support::files::folder::FolderLock;
use crate::support::terminal::exit::RunFailure;

/// The answers file of a run, open for one writer.
#[derive(Debug)]
pub struct AnswerJournal {
    path: PathBuf,
    file: File,
    replay: Option<ReplayedAnswers>,
    earlier: EarlierAnswers,
    scan: AnswerFileScan,
    /// Locked until the journal is dropped.
    _lock: FolderLock,
}

/// Read position in the existing answers.
#[derive(Debug)]
struct ReplayedAnswers {
    reader: BufReader<File>,
    /// Byte offset of `line`.
    offset: u64,
    /// The next line with its line break; empty at the end of the file.
    line: Vec<u8>,
}

impl ReplayedAnswers {
    fn open(path: &Path) -> std::io::Result<Self> {
        let reader = BufReader::new(File::open(path)?);
        let mut replay = Self { reader, offset: 0, line: Vec::new() };
        replay.reader.read_until(b'\n', &mut replay.line)?;
        Ok(replay)
    }

    fn advance(&mut self) -> std::io::Result<()> {
        self.offset += self.line.len() as u64;
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line)?;
        Ok(())
    }
}

impl AnswerJournal {
    /// Opens the answers file in an existing folder, and repairs it.
    ///
    /// # Errors
    ///
    /// Another run writes to the file, it is of another program, or it was made with other settings.
    pub fn open(path: &Path, settings: &AnswerSettings) -> Result<Self> {
        let lock = FolderLock::acquire_file(path)?;
        let mut earlier = EarlierAnswers::open(path)?;
        let mut scan = AnswerFileScan::read(path, settings, |record| earlier.mark_written(record))?;
        for record in earlier.unwritten() {
            if record.settings != settings.hash() {
                return Err(other_settings(path, settings, record));
            }
            scan.add_usage(record);
        }
        scan.repair(path)?;
        let context = || format!("--out {}: cannot be written", path.display());
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path).with_context(context)?;
        let replay = ReplayedAnswers::open(path).with_context(context)?;
        let (path, replay) = (path.to_owned(), Some(replay));
        Ok(Self { path, file, replay, earlier, scan, _lock: lock })
    }

    /// Returns the path of the answers.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the file contained on opening.
    pub fn scan(&self) -> &AnswerFileScan {
        &self.scan
    }

    /// Describes the repair on opening, one note per line.
    pub fn describe_repair(&self) -> Vec<String> {
        self.scan.notes(&self.path)
    }

    /// Returns the number of earlier answers that no question needed so far.
    pub fn unused_count(&self) -> usize {
        self.earlier.unwritten().count()
    }

    /// Returns the outcome of an earlier command for a key, if it can be reused.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn lookup(&mut self, key: &Digest) -> Result<Option<AnswerOutcome>> {
        if let Some(replay) = &self.replay {
            let record = AnswerRecord::parse(&replay.line);
            let record = record.filter(|record| record.key == *key && record.outcome.is_reusable());
            if let Some(record) = record {
                return Ok(Some(record.outcome));
            }
            self.end_replay()?;
        }
        Ok(self.earlier.find(key).map(|record| record.outcome.clone()))
    }

    /// Appends a record, unless the file already has it at this position.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub fn append(&mut self, record: &AnswerRecord) -> Result<()> {
        let line = record.to_line()?;
        if let Some(replay) = &mut self.replay {
            if replay.line == line.as_bytes() {
                self.earlier.mark_written(record);
                return replay.advance().with_context(|| self.failure("read"));
            }
            self.end_replay()?;
        }
        self.file.write_all(line.as_bytes()).with_context(|| self.failure("write"))?;
        self.earlier.mark_written(record);
        Ok(())
    }

    /// Returns true if an answer with this key is kept for later.
    pub fn is_kept(&self, key: &Digest) -> bool {
        self.earlier.find(key).is_some()
    }

    /// Keeps answers that wait for those of earlier questions, so that a later command can reuse them.
    /// They are on disk when it returns.
    ///
    /// # Errors
    ///
    /// The file of earlier answers cannot be written.
    pub fn keep(&mut self, records: Vec<AnswerRecord>) -> Result<()> {
        self.earlier.add(records)
    }

    /// Syncs the file to disk.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn sync(&mut self) -> Result<()> {
        if self.replay.is_some() {
            return Ok(());
        }
        self.file.sync_data().with_context(|| self.failure("write"))
    }

    /// Finishes a run that has read all its input. Answers that no question needs stay in the file of
    /// earlier answers.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        self.end_replay()?;
        self.sync()?;
        self.earlier.retain_unwritten()
    }

    /// Ends the replay at the current line: moves the rest of the file to the earlier answers.
    fn end_replay(&mut self) -> Result<()> {
        let Some(mut replay) = self.replay.take() else {
            return Ok(());
        };
        if replay.line.is_empty() {
            return Ok(());
        }
        replay.reader.seek(SeekFrom::Start(replay.offset)).with_context(|| self.failure("read"))?;
        // Copy before truncating, so that each answer is in one of the files at any time.
        self.earlier.import(&mut replay.reader)?;
        self.file.set_len(replay.offset).with_context(|| self.failure("write"))
    }

    fn failure(&self, verb: &str) -> RunFailure {
        RunFailure(format!(
            "cannot {verb} {}\nhint: finished answers are safe; run the same command again to resume",
            self.path.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::answer_settings::AnswerManifest;
    use super::super::question_prompt::QuestionPrompt;
    use super::*;
    use crate::data::cases::UnscoredReason;
    use crate::judging::judge::text_writer::{TextSampling, WriterSettings};

    fn settings() -> AnswerSettings {
        let sampling = TextSampling { max_tokens: 9, temperature: 0.0, top_k: None, seed: None };
        let prompt = QuestionPrompt::default();
        AnswerSettings::new("m", WriterSettings::new(), &sampling, &prompt, true)
    }

    /// Creates the record of a question; a failed one is asked again.
    fn record(question: &str, has_failed: bool) -> AnswerRecord {
        let text = format!("answer to {question}");
        let outcome = if has_failed {
            AnswerOutcome::Unanswered { unanswered: UnscoredReason::Transport, message: text }
        } else {
            let (prompt_tokens, written_tokens) = (Some(3), Some(2));
            AnswerOutcome::Answered { text, cut: false, prompt_tokens, written_tokens }
        };
        AnswerRecord {
            question_id: question.to_owned(),
            prompt: question.to_owned(),
            outcome,
            model_id: "m".to_owned(),
            settings: settings().hash(),
            key: settings().key(question, question, None),
        }
    }

    fn lines(records: &[AnswerRecord]) -> String {
        records.iter().map(|record| record.to_line().unwrap()).collect()
    }

    /// Runs over these records. Returns the number of reused outcomes.
    fn run_with(path: &Path, records: &[AnswerRecord], finish: bool) -> usize {
        let mut journal = AnswerJournal::open(path, &settings()).unwrap();
        let mut reused = 0;
        for record in records {
            if let Some(outcome) = journal.lookup(&record.key).unwrap() {
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

    #[test]
    fn resumes_after_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let all = ["1", "2", "3"].map(|n| record(n, false));
        let complete = lines(&all);
        AnswerManifest::new("q".to_owned(), "m".to_owned(), settings()).write(&path).unwrap();
        for length in (0..complete.len()).step_by(17).chain([complete.len() - 1]) {
            fs::write(&path, &complete[..length]).unwrap();
            // A line that lacks only its line break is complete.
            let reused = complete[..length].matches("\"}").count();
            assert_eq!(run_with(&path, &all, true), reused, "cut at {length}");
            assert_eq!(fs::read_to_string(&path).unwrap(), complete, "cut at {length}");
            assert!(!path.with_extension("earlier").exists());
        }
    }

    #[test]
    fn failed_question_is_asked_again_and_later_answers_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let first = [record("1", false), record("2", true), record("3", false), record("4", false)];
        run_with(&path, &first, true);
        let again = ["1", "2", "3", "4"].map(|n| record(n, false));
        // The second command is killed after the question that it asks again.
        assert_eq!(run_with(&path, &again[..2], false), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(&again[..2]));
        let usage = AnswerJournal::open(&path, &settings()).unwrap().scan().usage;
        assert_eq!((usage.jobs, usage.usage.prompt_tokens), (4, 12));
        assert_eq!(run_with(&path, &again, true), 4);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(&again));
        assert!(!path.with_extension("earlier").exists());
    }

    #[test]
    fn changed_input_reuses_answers_and_loses_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let old = ["1", "2", "3", "4"].map(|n| record(n, false));
        run_with(&path, &old, true);
        let new = [record("0", false), old[0].clone(), old[3].clone()];
        assert_eq!(run_with(&path, &new, true), 2);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(&new));
        let kept = fs::read_to_string(path.with_extension("earlier")).unwrap();
        assert_eq!(kept, lines(&old[1..3]));
        assert_eq!(run_with(&path, &old, true), 4);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(&old));
    }

    #[test]
    fn answers_that_wait_for_earlier_ones_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let all = ["1", "2", "3"].map(|n| record(n, false));
        let mut journal = AnswerJournal::open(&path, &settings()).unwrap();
        journal.keep(vec![all[2].clone(), record("4", true)]).unwrap();
        journal.keep(all[1..].to_vec()).unwrap();
        journal.append(&all[0]).unwrap();
        journal.append(&all[1]).unwrap();
        // The command is killed here. One answer is in both files.
        drop(journal);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(&all[..2]));
        let journal = AnswerJournal::open(&path, &settings()).unwrap();
        assert_eq!((journal.scan().usage.jobs, journal.unused_count()), (3, 1));
        drop(journal);
        assert_eq!(run_with(&path, &all, true), 3);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(&all));
        assert!(!path.with_extension("earlier").exists());
    }

    #[test]
    fn answers_that_were_kept_and_written_are_no_earlier_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let all = ["1", "2"].map(|n| record(n, false));
        let mut journal = AnswerJournal::open(&path, &settings()).unwrap();
        journal.keep(all[1..].to_vec()).unwrap();
        for record in &all {
            journal.append(record).unwrap();
        }
        assert_eq!(journal.unused_count(), 0);
        journal.finish().unwrap();
        assert!(!path.with_extension("earlier").exists());
    }

    #[test]
    fn kept_answers_of_other_settings_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let other = AnswerRecord { settings: "0".repeat(16), ..record("2", false) };
        AnswerJournal::open(&path, &settings()).unwrap().keep(vec![other]).unwrap();
        let error = AnswerJournal::open(&path, &settings()).unwrap_err().to_string();
        assert!(error.contains("other settings"), "{error}");
    }

    #[test]
    fn damaged_lines_are_moved_and_asked_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let all = ["1", "2", "3"].map(|n| record(n, false));
        fs::write(&path, lines(&all).replace("answer to 2\"", "answer to 2")).unwrap();
        let journal = AnswerJournal::open(&path, &settings()).unwrap();
        assert!(journal.describe_repair()[0].contains("1 damaged line"));
        drop(journal);
        assert_eq!(run_with(&path, &all, true), 2);
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(&all));
        assert!(
            fs::read_to_string(path.with_extension("damaged")).unwrap().contains("answer to 2")
        );
    }

    #[test]
    fn other_settings_files_and_writers_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let other = AnswerRecord { settings: "0".repeat(16), ..record("1", false) };
        fs::write(&path, other.to_line().unwrap()).unwrap();
        let error = AnswerJournal::open(&path, &settings()).unwrap_err().to_string();
        assert!(error.contains("other settings") && error.contains("hint: "), "{error}");
        for foreign in ["{\"question_id\": 1, \"text\": \"a\"}\n", "notes", "{\"question_id\": 1}"]
        {
            fs::write(&path, foreign).unwrap();
            let error = AnswerJournal::open(&path, &settings()).unwrap_err().to_string();
            assert!(error.contains("no answers of this command"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
        }
        fs::remove_file(&path).unwrap();
        let _first = AnswerJournal::open(&path, &settings()).unwrap();
        let error = AnswerJournal::open(&path, &settings()).unwrap_err().to_string();
        assert!(error.contains("another run"), "{error}");
    }
}

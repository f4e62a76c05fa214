//! Journal of judged pairs: one JSON line per outcome, appended after each batch.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::pair_outcome::{PairOutcome, ShownImage};
use crate::judging::run::journal::torn_line::truncate_torn_line;

/// Journal of one encoder and seed.
pub(super) struct OutcomeJournal {
    path: PathBuf,
    file: File,
    /// Outcomes so far.
    pub(super) outcomes: Vec<PairOutcome>,
}

impl OutcomeJournal {
    /// Opens or creates a journal. Removes the incomplete last line of a killed run.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has a damaged line.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let context = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).with_context(context)?;
        truncate_torn_line(&mut file).with_context(context)?;
        file.seek(SeekFrom::Start(0)).with_context(context)?;
        let mut outcomes = Vec::new();
        for (i, line) in BufReader::new(&file).lines().enumerate() {
            let line = line.with_context(context)?;
            let outcome: PairOutcome = serde_json::from_str(&line).with_context(|| {
                format!(
                    "{}: line {} is damaged\nhint: delete the file; the pairs are judged again",
                    path.display(),
                    i + 1
                )
            })?;
            outcomes.push(outcome);
        }
        file.seek(SeekFrom::End(0)).with_context(context)?;
        Ok(Self { path: path.to_owned(), file, outcomes })
    }

    /// Returns true if a pair has an outcome with this image.
    pub(super) fn contains(&self, pair: usize, image: ShownImage) -> bool {
        self.outcomes.iter().any(|outcome| outcome.pair == pair && outcome.image == image)
    }

    /// Appends outcomes and waits until they are on disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn append(&mut self, outcomes: Vec<PairOutcome>) -> Result<()> {
        let mut text = String::new();
        for outcome in &outcomes {
            text += &serde_json::to_string(outcome).context("cannot write an outcome")?;
            text.push('\n');
        }
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| {
            format!("cannot write {}\nhint: check the free space", self.path.display())
        })?;
        self.outcomes.extend(outcomes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_line_is_removed_and_judged_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("judged.jsonl");
        let outcome = |pair| PairOutcome {
            pair,
            image: ShownImage::Own,
            accuracy: None,
            unscored: Some("truncated: too long".to_owned()),
            seconds: 0.5,
        };
        OutcomeJournal::open(&path).unwrap().append(vec![outcome(0), outcome(1)]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let mut journal = OutcomeJournal::open(&path).unwrap();
        assert_eq!(journal.outcomes, [outcome(0)]);
        assert!(!journal.contains(1, ShownImage::Own) && !journal.contains(0, ShownImage::Blank));
        journal.append(vec![outcome(1)]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::write(&path, "nothing\n").unwrap();
        let error = format!("{:#}", OutcomeJournal::open(&path).err().unwrap());
        assert!(error.contains("line 1 is damaged") && error.contains("hint: "), "{error}");
    }
}

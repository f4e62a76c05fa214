//! Journal of judged pairs: one JSON line per outcome, appended after each batch.

use std::path::Path;

use anyhow::{Context, Result};

use super::pair_outcome::{PairOutcome, ShownImage};
use crate::support::files::append_file::AppendFile;

/// Journal of one encoder and seed.
pub(super) struct OutcomeJournal {
    file: AppendFile,
    /// Outcomes so far.
    pub(super) outcomes: Vec<PairOutcome>,
}

impl OutcomeJournal {
    /// Opens or creates a journal. Removes the incomplete last line of a killed run.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has a damaged line.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (file, text) = AppendFile::open(path)?;
        let outcomes = text.lines().enumerate().map(|(i, line)| {
            serde_json::from_str(line).with_context(|| {
                format!(
                    "{}: line {} is damaged\nhint: delete the file; the pairs are judged again",
                    path.display(),
                    i + 1
                )
            })
        });
        Ok(Self { outcomes: outcomes.collect::<Result<_>>()?, file })
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
        let lines = outcomes.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        self.file.append(&lines.context("cannot write an outcome")?)?;
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

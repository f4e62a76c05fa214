//! Log of suggestions (JSON Lines), so that no request to an adviser is repeated.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::review::PairId;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::run::torn_line;
use crate::support::terminal::exit::EngineFailure;

/// Result of the requests about one pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Advice {
    /// Case id.
    pub(super) case: String,
    /// Models of the two responses.
    pub(super) pair: [String; 2],
    /// Name of the adviser.
    pub(super) by: String,
    /// Number of requests.
    pub(super) attempts: u32,
    /// Reason why no suggestion was accepted; the pair needs manual review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// The suggested verdict, restricted to the presentation orders that agree with the labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accepted: Option<RecordedVerdict>,
}

/// Append-only log of the suggestions of a round.
pub(super) struct AdviceLog {
    path: PathBuf,
    file: File,
    by: String,
    known: HashMap<PairId, Advice>,
}

impl AdviceLog {
    /// Opens or creates the log of a round and truncates a torn line. Suggestions of other advisers than `by` stay
    /// in the file and are ignored.
    pub(super) fn open(path: &Path, by: String) -> Result<Self> {
        let place = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let mut file = options.open(path).with_context(place)?;
        torn_line::truncate_torn_line(&mut file).with_context(place)?;
        let text = std::fs::read_to_string(path).with_context(place)?;
        let mut known = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let advice: Advice = serde_json::from_str(line).with_context(|| {
                format!(
                    "{} line {}: malformed suggestion\n\
                     hint: correct or delete the line; a deleted suggestion is requested again",
                    path.display(),
                    number + 1
                )
            })?;
            if advice.by == by {
                known.insert((advice.case.clone(), advice.pair.clone()), advice);
            }
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            by,
            known,
        })
    }

    /// Returns the name of the adviser.
    pub(super) fn by(&self) -> &str {
        &self.by
    }

    /// Returns the suggestion for a pair.
    pub(super) fn get(&self, name: &PairId) -> Option<&Advice> {
        self.known.get(name)
    }

    /// Appends the result for a pair.
    pub(super) fn put(&mut self, advice: Advice) -> Result<()> {
        let mut line = serde_json::to_string(&advice).context("cannot serialise a suggestion")?;
        line.push('\n');
        let written = self.file.write_all(line.as_bytes());
        written.with_context(|| {
            EngineFailure(format!(
                "cannot write {}\nhint: free disk space, then run the same command to resume",
                self.path.display()
            ))
        })?;
        let name = (advice.case.clone(), advice.pair.clone());
        self.known.insert(name, advice);
        Ok(())
    }
}

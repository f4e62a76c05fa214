//! Log of suggestions (JSON Lines), so that no request to an adviser is repeated.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::run::journal::torn_line;
use crate::support::terminal::exit::RunFailure;
use crate::training::introspection::review::PairId;

/// Result of the requests about one pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Advice {
    /// Case id.
    pub(crate) case: String,
    /// Models of the two responses.
    pub(crate) pair: [String; 2],
    /// Name of the adviser.
    #[serde(rename = "by")]
    pub(crate) adviser: String,
    /// Number of requests.
    pub(crate) attempts: u32,
    /// Reason why no suggestion was accepted. The pair then needs manual review.
    #[serde(default, rename = "refused", skip_serializing_if = "Option::is_none")]
    pub(crate) rejection: Option<String>,
    /// Suggested verdict, restricted to the presentation orders that agree with the labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accepted: Option<RecordedVerdict>,
}

/// Append-only log of the suggestions of a round.
pub(crate) struct AdviceLog {
    path: PathBuf,
    file: File,
    adviser: String,
    advice: HashMap<PairId, Advice>,
}

impl AdviceLog {
    /// Opens or creates the log of a round and truncates a torn line. Suggestions of other advisers
    /// stay in the file but are ignored.
    pub(crate) fn open(path: &Path, adviser: String) -> Result<Self> {
        let describe = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let mut file = options.open(path).with_context(describe)?;
        torn_line::truncate_torn_line(&mut file).with_context(describe)?;
        let text = std::fs::read_to_string(path).with_context(describe)?;
        let mut advice_by_pair = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let advice: Advice = serde_json::from_str(line).with_context(|| {
                format!(
                    "{} line {}: malformed suggestion\n\
                     hint: correct or delete the line; a deleted suggestion is requested again",
                    path.display(),
                    number + 1
                )
            })?;
            if advice.adviser == adviser {
                advice_by_pair.insert((advice.case.clone(), advice.pair.clone()), advice);
            }
        }
        Ok(Self { path: path.to_owned(), file, adviser, advice: advice_by_pair })
    }

    /// Returns the name of the adviser.
    pub(crate) fn adviser_name(&self) -> &str {
        &self.adviser
    }

    /// Returns the suggestion for a pair.
    pub(crate) fn get(&self, pair: &PairId) -> Option<&Advice> {
        self.advice.get(pair)
    }

    /// Appends the result for a pair.
    pub(crate) fn append(&mut self, advice: Advice) -> Result<()> {
        let mut line = serde_json::to_string(&advice).context("cannot serialise a suggestion")?;
        line.push('\n');
        let result = self.file.write_all(line.as_bytes());
        result.with_context(|| {
            RunFailure(format!(
                "cannot write {}\nhint: free disk space, then run the same command to resume",
                self.path.display()
            ))
        })?;
        let pair = (advice.case.clone(), advice.pair.clone());
        self.advice.insert(pair, advice);
        Ok(())
    }
}

//! What was suggested so far, line by line: answers that were waited or paid for are asked for once.

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

/// What came of asking about a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Advice {
    /// The case.
    pub(super) case: String,
    /// The models.
    pub(super) pair: [String; 2],
    /// Who was asked.
    pub(super) by: String,
    /// How often was asked.
    pub(super) attempts: u32,
    /// Why nothing is learned from it; a person is to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// The suggested verdict, those presentations of it that agree with what people said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accepted: Option<RecordedVerdict>,
}

/// The file of what was suggested.
pub(super) struct AdviceLog {
    path: PathBuf,
    file: File,
    by: String,
    known: HashMap<PairId, Advice>,
}

impl AdviceLog {
    /// Opens the file of a round, made if need be; a line that an earlier end of the program tore is dropped. What
    /// others than `by` suggested earlier stays in it, and is not heeded.
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
                    "{} line {}: not a suggestion of an earlier run\n\
                     hint: mend or delete the line; what it was about is asked again",
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

    /// Who is asked.
    pub(super) fn by(&self) -> &str {
        &self.by
    }

    /// What is known of a pair.
    pub(super) fn get(&self, name: &PairId) -> Option<&Advice> {
        self.known.get(name)
    }

    /// Keeps what came of asking.
    pub(super) fn put(&mut self, advice: Advice) -> Result<()> {
        let mut line = serde_json::to_string(&advice).context("cannot write a suggestion")?;
        line.push('\n');
        let written = self.file.write_all(line.as_bytes());
        written.with_context(|| {
            EngineFailure(format!(
                "cannot write {}\nhint: make room; the same command resumes",
                self.path.display()
            ))
        })?;
        let name = (advice.case.clone(), advice.pair.clone());
        self.known.insert(name, advice);
        Ok(())
    }
}

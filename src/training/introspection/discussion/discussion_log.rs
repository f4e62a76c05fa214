//! Log of the discussions of a round (JSON Lines), so that none is repeated.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::discussion_round::DiscussionRound;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::support::files::append_file::AppendFile;
use crate::training::introspection::judged::review::PairId;

/// Value of `by` in the lines of people.
const PEOPLE: &str = "people";

/// Result of the discussion of one pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Advice {
    /// Case id.
    pub(crate) case: String,
    /// Models of the two responses.
    pub(crate) pair: [String; 2],
    /// Name of the adviser.
    #[serde(rename = "by")]
    pub(crate) adviser: String,
    /// Name of the reviewer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reviewer: Option<String>,
    /// Number of suggestions.
    pub(crate) attempts: u32,
    /// Reason why no suggestion was accepted. The pair then needs manual review.
    #[serde(default, rename = "refused", skip_serializing_if = "Option::is_none")]
    pub(crate) rejection: Option<String>,
    /// Suggested verdict, restricted to the presentation orders that agree with the labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accepted: Option<RecordedVerdict>,
    /// All suggestions and reviews, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) discussion: Vec<DiscussionRound>,
}

/// Names of those who discuss. A log has the discussions of others too, which are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Discussants {
    /// Name of the adviser.
    pub(crate) adviser: String,
    /// Name of the reviewer, if there is one.
    pub(crate) reviewer: Option<String>,
}

/// Append-only log of the discussions and decisions of a round.
pub(crate) struct DiscussionLog {
    file: AppendFile,
    discussants: Discussants,
    advice: HashMap<PairId, Advice>,
    /// Decisions of people, as they stand in the file.
    decisions: BTreeSet<String>,
}

impl DiscussionLog {
    /// Opens or creates the log of a round and truncates a torn line.
    pub(crate) fn open(path: &Path, discussants: Discussants) -> Result<Self> {
        let (file, text) = AppendFile::open(path)?;
        let (mut advice_by_pair, mut decisions) = (HashMap::new(), BTreeSet::new());
        for (number, line) in text.lines().enumerate() {
            let malformed = || {
                format!(
                    "{} line {}: malformed suggestion\n\
                     hint: correct or delete the line; a deleted suggestion is requested again",
                    path.display(),
                    number + 1
                )
            };
            let fields: Value = serde_json::from_str(line).with_context(malformed)?;
            if fields["by"] == PEOPLE {
                decisions.insert(line.to_owned());
                continue;
            }
            let advice: Advice = serde_json::from_value(fields).with_context(malformed)?;
            let is_same =
                advice.adviser == discussants.adviser && advice.reviewer == discussants.reviewer;
            if is_same {
                advice_by_pair.insert((advice.case.clone(), advice.pair.clone()), advice);
            }
        }
        Ok(Self { file, discussants, advice: advice_by_pair, decisions })
    }

    /// Returns the names of those who discuss.
    pub(crate) fn discussants(&self) -> &Discussants {
        &self.discussants
    }

    /// Returns the result for a pair.
    pub(crate) fn get(&self, pair: &PairId) -> Option<&Advice> {
        self.advice.get(pair)
    }

    /// Appends the result for a pair.
    pub(crate) fn append(&mut self, advice: Advice) -> Result<()> {
        let line = serde_json::to_string(&advice).context("cannot serialise a suggestion")?;
        self.file.append(&[line])?;
        let pair = (advice.case.clone(), advice.pair.clone());
        self.advice.insert(pair, advice);
        Ok(())
    }

    /// Returns true if the log has a decision of people.
    pub(crate) fn has_decision(&self, decision: &impl Serialize) -> Result<bool> {
        Ok(self.decisions.contains(&decision_line(decision)?))
    }

    /// Appends a decision of people, unless the log has it already.
    pub(crate) fn append_decision(&mut self, decision: &impl Serialize) -> Result<()> {
        let line = decision_line(decision)?;
        if !self.decisions.contains(&line) {
            self.file.append(std::slice::from_ref(&line))?;
            self.decisions.insert(line);
        }
        Ok(())
    }
}

/// Returns the line of a decision.
fn decision_line(decision: &impl Serialize) -> Result<String> {
    let mut fields = serde_json::to_value(decision).context("cannot serialise a decision")?;
    fields["by"] = PEOPLE.into();
    Ok(fields.to_string())
}

//! `unresolved.jsonl`: the pairs that need a decision of people.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pair_evaluation::PairEvaluation;
use crate::support::files::atomic_file;
use crate::training::introspection::discussion::discussion_round::DiscussionRound;
use crate::training::introspection::judged::misjudged_pair::MisjudgedPair;
use crate::training::introspection::judged::review::PairId;
use crate::training::preferences::numbered_lines;

/// A suggestion that people can accept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NumberedSuggestion {
    /// Number in the discussion, from 1.
    pub(crate) number: usize,
    /// Why it was not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// The evaluation in each presentation order; empty if the adviser gave none.
    #[serde(default)]
    pub(crate) orders: Vec<PairEvaluation>,
}

/// A line of the file.
#[derive(Serialize)]
struct UnresolvedLine<'a> {
    case: &'a str,
    pair: &'a [String; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    responses: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<[f64; 2]>,
    reason: &'a str,
    suggestions: Vec<NumberedSuggestion>,
    /// What people fill in.
    decision: Value,
}

/// Lines of the file of a round.
#[derive(Default)]
pub(crate) struct UnresolvedFile {
    text: String,
    count: usize,
}

impl UnresolvedFile {
    /// Returns the number of pairs.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a pair with its discussion.
    ///
    /// # Errors
    /// If the line cannot be serialised.
    pub(crate) fn push(
        &mut self,
        misjudged: &MisjudgedPair,
        discussion: &[DiscussionRound],
        reason: &str,
    ) -> Result<()> {
        let (case, pair) = misjudged.id();
        let suggestions = (1..).zip(discussion).map(|(number, round)| {
            let orders = round.suggestion.iter().flat_map(|suggestion| &suggestion.orders);
            NumberedSuggestion {
                number,
                problem: round.rejection(),
                orders: orders.map(PairEvaluation::from_order).collect(),
            }
        });
        self.push_line(&UnresolvedLine {
            case: &case,
            pair: &pair,
            image: misjudged.job.image.as_ref().map(|image| image.name.as_str()),
            question: Some(misjudged.job.question()),
            responses: Some(misjudged.job.texts()),
            known: Some(misjudged.labels),
            reason,
            suggestions: suggestions.collect(),
            decision: Value::Null,
        })
    }

    /// Adds a pair whose image cannot be read.
    ///
    /// # Errors
    /// If the line cannot be serialised.
    pub(crate) fn push_unreadable(&mut self, (case, pair): &PairId, reason: &str) -> Result<()> {
        self.push_line(&UnresolvedLine {
            case,
            pair,
            image: None,
            question: None,
            responses: None,
            known: None,
            reason,
            suggestions: Vec::new(),
            decision: Value::Null,
        })
    }

    fn push_line(&mut self, line: &UnresolvedLine) -> Result<()> {
        self.text += &serde_json::to_string(line).context("cannot serialise a pair")?;
        self.text.push('\n');
        self.count += 1;
        Ok(())
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        atomic_file::write_atomic(path, self.text.as_bytes())
    }
}

/// Checks that people did not fill the file itself, which a later run writes again.
///
/// # Errors
/// If a line has a decision.
pub(crate) fn check_not_filled(path: &Path) -> Result<()> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(());
    };
    let is_filled = |line: &str| {
        let fields: Option<Value> = serde_json::from_str(line).ok();
        fields.is_some_and(|fields| fields.get("decision").is_some_and(|d| !d.is_null()))
    };
    if let Some((number, _)) = numbered_lines(&text).find(|(_, line)| is_filled(line)) {
        bail!(
            "{}, line {number}: the file has a decision, and this command writes the file anew\n\
             hint: move the file, for example to decisions.jsonl, and pass it with --decisions",
            path.display()
        );
    }
    Ok(())
}

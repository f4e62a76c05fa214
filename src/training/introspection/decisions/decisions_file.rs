//! Reads the decisions of people and checks them against the labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use acem3_experts::prompt::Rubric;
use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::decision_line::{Decision, DecisionLine};
use super::labelled_pairs::read_labels;
use crate::data::cases::SourceSpec;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::support::files::regular_file;
use crate::training::introspection::discussion::label_check::filter_agreeing;
use crate::training::introspection::judged::review::PairId;
use crate::training::preferences::numbered_lines;

/// A decision of people, as the log records it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PeopleDecision {
    /// Case id.
    case: String,
    /// Models of the two responses.
    pair: [String; 2],
    /// Name of the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    /// Number of the accepted suggestion; absent for an own evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    accept: Option<usize>,
    /// The evaluation, restricted to the presentation orders that agree with the labels.
    pub(crate) accepted: RecordedVerdict,
}

/// Decisions of people by pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    by_pair: BTreeMap<PairId, PeopleDecision>,
    /// Pairs whose decision trained a panel, or will.
    used: BTreeSet<PairId>,
}

impl Decisions {
    /// Reads the decisions about the pairs of the cases.
    ///
    /// # Errors
    /// If a line is malformed or half filled, decides about a pair twice or about one that the cases
    /// do not have, or contradicts the labels.
    pub(crate) fn read(path: &Path, cases: &SourceSpec, rubric: &Rubric) -> Result<Self> {
        let text = regular_file::read_to_string(path).with_context(|| {
            format!(
                "--decisions {}: cannot be read\n\
                 hint: fill in `decision` in a copy of unresolved.jsonl, and pass the copy",
                path.display()
            )
        })?;
        let place = |number: usize| format!("{}, line {number}", path.display());
        let mut lines: BTreeMap<PairId, (usize, DecisionLine, Decision)> = BTreeMap::new();
        for (number, line) in numbered_lines(&text) {
            let malformed = || {
                let hint = "hint: keep the lines of unresolved.jsonl, and change `decision` only";
                format!("{}: not a pair of unresolved.jsonl\n{hint}", place(number))
            };
            let line: DecisionLine = serde_json::from_str(line).with_context(malformed)?;
            let Some(decision) = line.decision().with_context(|| place(number))? else {
                continue;
            };
            let id = (line.case.clone(), line.pair.clone());
            if let Some((earlier, ..)) = lines.get(&id) {
                bail!(
                    "{}: line {earlier} decides about this pair too\nhint: delete one of the two",
                    place(number)
                );
            }
            lines.insert(id, (number, line, decision));
        }
        let labels = read_labels(cases, &lines.keys().cloned().collect())?;
        let mut by_pair = BTreeMap::new();
        for (id, (number, line, decision)) in lines {
            let decided = decide(&line, &decision, &labels, rubric);
            by_pair.insert(id, decided.with_context(|| place(number))?);
        }
        Ok(Self { by_pair, used: BTreeSet::new() })
    }

    /// Returns the decision about a pair, if there is one.
    pub(crate) fn get(&self, pair: &PairId) -> Option<&PeopleDecision> {
        self.by_pair.get(pair)
    }

    /// Marks the decision about a pair as used.
    pub(crate) fn mark_used(&mut self, pair: &PairId) {
        self.used.insert(pair.clone());
    }

    /// Returns the number of decisions, and the number of those that were not used.
    pub(crate) fn counts(&self) -> [usize; 2] {
        [self.by_pair.len(), self.by_pair.len().saturating_sub(self.used.len())]
    }
}

/// Returns the evaluation of a line. `labels`: the labels of the pairs of the cases.
fn decide(
    line: &DecisionLine,
    decision: &Decision,
    labels: &BTreeMap<PairId, Option<[f64; 2]>>,
    rubric: &Rubric,
) -> Result<PeopleDecision> {
    let (case, [first, second]) = (&line.case, &line.pair);
    let Some(labels) = labels.get(&(case.clone(), line.pair.clone())) else {
        bail!(
            "the cases have no pair of {first} and {second} in case {case}\n\
             hint: pass the cases that unresolved.jsonl is about"
        );
    };
    let labels = labels.with_context(|| {
        format!("case {case} has no final labels\nhint: a decision needs a labelled pair")
    })?;
    let verdict = line.verdict(decision, labels, rubric)?;
    let accepted = filter_agreeing(verdict, labels).map_err(|problem| {
        anyhow::anyhow!(
            "the decision contradicts the labels {} and {}: {problem}\n\
             hint: decide for an evaluation that agrees with them, or correct the labels of the case",
            labels[0],
            labels[1]
        )
    })?;
    let (person, accept) = (decision.by.clone(), decision.accept);
    Ok(PeopleDecision { case: case.clone(), pair: line.pair.clone(), person, accept, accepted })
}

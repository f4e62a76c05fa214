//! The automatic check of a teacher's verdict: is it complete, in range, and in agreement with what is
//! known about the responses?

use std::cmp::Ordering;

use acem3_experts::prompt::Form;
use serde::Serialize;

use crate::judging::judge::recorded_verdict::{RecordedOrder, RecordedVerdict, ResponseScores};
use crate::judging::run::record::{RecordOutcome, RecordSubject};

/// Name of the model whose response is the reference answer.
const REFERENCE_MODEL: &str = "reference";

/// What the check demands besides complete evaluations.
#[derive(Clone, Copy, Debug)]
pub struct CheckRules {
    /// Compare the order of the final scores with the labels.
    pub labels: bool,
    /// A response that equals the reference must not score lower than one that does not.
    pub reference: bool,
    /// Reject pairs whose preferred response changes with the presentation order.
    pub flips: bool,
    /// Largest difference between the final score of a response alone and its label.
    pub max_difference: f64,
    /// Lowest and highest score of the rubric.
    pub score_range: [u8; 2],
}

/// Why an evaluation is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// The kind of problem.
    pub reason: RejectReason,
    /// What was found and expected.
    pub message: String,
}

/// Kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// The teacher gave no verdict.
    Unscored,
    /// A score has no analysis.
    NoAnalysis,
    /// An analysis reached the token budget.
    CutAnalysis,
    /// A score is outside the range of the rubric.
    OutOfRange,
    /// The final scores contradict the labels.
    ContradictsLabels,
    /// A response that equals the reference scores lower than one that does not.
    ContradictsReference,
    /// The preferred response changes with the presentation order.
    Flip,
    /// The record lacks what the prompts show.
    Incomplete,
}

impl RejectReason {
    /// Returns the name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unscored => "unscored",
            Self::NoAnalysis => "no_analysis",
            Self::CutAnalysis => "cut_analysis",
            Self::OutOfRange => "out_of_range",
            Self::ContradictsLabels => "contradicts_labels",
            Self::ContradictsReference => "contradicts_reference",
            Self::Flip => "flip",
            Self::Incomplete => "incomplete",
        }
    }

    fn because(self, message: impl Into<String>) -> Rejection {
        Rejection { reason: self, message: message.into() }
    }
}

impl CheckRules {
    /// Returns the verdict of a record, or why no presentation order of it can be used; `None` for a record
    /// of an input problem that affects no verdict.
    pub fn verdict<'a>(
        &self,
        outcome: &'a RecordOutcome,
    ) -> Option<Result<&'a RecordedVerdict, Rejection>> {
        match outcome {
            RecordOutcome::Noted { .. } => None,
            RecordOutcome::Unscored(unscored) => {
                let message = format!("{}: {}", unscored.reason.name(), unscored.message);
                Some(Err(RejectReason::Unscored.because(message)))
            }
            RecordOutcome::Judged(verdict) if self.flips && verdict.flip == Some(true) => {
                let message = "the preferred response changes with the presentation order";
                Some(Err(RejectReason::Flip.because(message)))
            }
            RecordOutcome::Judged(verdict) => Some(Ok(verdict)),
        }
    }

    /// Checks one presentation order.
    ///
    /// # Errors
    ///
    /// The evaluations of this order are rejected.
    pub fn check(&self, subject: &RecordSubject, order: &RecordedOrder) -> Result<(), Rejection> {
        self.check_texts(subject.form, order)?;
        if self.labels {
            self.check_labels(subject, order)?;
        }
        if self.reference {
            self.check_reference(subject, order)?;
        }
        Ok(())
    }

    /// Returns true if the labels or the reference of a record say something about its scores.
    pub fn can_compare(&self, subject: &RecordSubject) -> bool {
        let labels = subject.labels.as_ref().and_then(|labels| labels.final_scores.as_ref());
        let has_labels = self.labels && subject.form != Form::Correctness && labels.is_some();
        has_labels || (self.reference && right_responses(subject).contains(&true))
    }

    fn check_texts(&self, form: Form, order: &RecordedOrder) -> Result<(), Rejection> {
        let range = if form == Form::Correctness { [0, 1] } else { self.score_range };
        let criteria = order.aspects.values().flatten();
        let criteria = criteria.map(|(criterion, scores)| (criterion.key(), scores));
        for (name, scores) in criteria.chain([("the conclusion", &order.conclusion)]) {
            check_analyses(name, scores)?;
            let is_outside = |score: &&u8| !(range[0]..=range[1]).contains(*score);
            if let Some(score) = scores.scores.iter().find(is_outside) {
                let message =
                    format!("{name}: score {score}, expected {} to {}", range[0], range[1]);
                return Err(RejectReason::OutOfRange.because(message));
            }
        }
        Ok(())
    }

    fn check_labels(
        &self,
        subject: &RecordSubject,
        order: &RecordedOrder,
    ) -> Result<(), Rejection> {
        let labels = subject.labels.as_ref().and_then(|labels| labels.final_scores.as_deref());
        let Some(labels) = labels.filter(|labels| labels.len() == order.scores.len()) else {
            return Ok(());
        };
        let contradiction = |message: String| Err(RejectReason::ContradictsLabels.because(message));
        if let ([score], [label]) = (order.scores.as_slice(), labels) {
            let difference = (f64::from(*score) - label).abs();
            return if subject.form == Form::Single && difference > self.max_difference {
                contradiction(format!("final score {score}, label {label}"))
            } else {
                Ok(())
            };
        }
        for (i, j) in index_pairs(labels.len()) {
            let (found, expected) = (compare(order, i, j), labels[i].total_cmp(&labels[j]));
            // A tie contradicts the label of a pair. In a list, only a reversed order does.
            let is_wrong = match subject.form {
                Form::Pair => found != expected,
                _ => found != Ordering::Equal && found == expected.reverse(),
            };
            if is_wrong {
                return contradiction(format!(
                    "final scores {:?}, labels {labels:?} (responses {} and {})",
                    order.scores,
                    i + 1,
                    j + 1
                ));
            }
        }
        Ok(())
    }

    fn check_reference(
        &self,
        subject: &RecordSubject,
        order: &RecordedOrder,
    ) -> Result<(), Rejection> {
        let is_right = right_responses(subject);
        let contradiction =
            |message: String| Err(RejectReason::ContradictsReference.because(message));
        if let (Form::Single | Form::Correctness, [true], [score]) =
            (subject.form, is_right.as_slice(), order.scores.as_slice())
        {
            let [low, high] = match subject.form {
                Form::Correctness => [0, 1],
                _ => self.score_range,
            };
            return if 2 * u16::from(*score) < u16::from(low) + u16::from(high) {
                contradiction(format!("the response equals the reference and scores {score}"))
            } else {
                Ok(())
            };
        }
        for (i, j) in index_pairs(is_right.len()) {
            let worse = match (is_right[i], is_right[j]) {
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                _ => continue,
            };
            if compare(order, i, j) == worse {
                return contradiction(format!(
                    "the response that equals the reference scores lower: {:?}",
                    order.scores
                ));
            }
        }
        Ok(())
    }
}

/// Returns which responses equal the reference. Others may be right too.
fn right_responses(subject: &RecordSubject) -> Vec<bool> {
    let texts = subject.responses.as_deref().unwrap_or_default();
    let expected = subject.reference.as_deref().map(normalize);
    let models = subject.judged_models();
    let is_right = texts.iter().enumerate().map(|(i, text)| {
        models.get(i).is_some_and(|model| model == REFERENCE_MODEL)
            || expected.as_ref().is_some_and(|expected| normalize(text) == *expected)
    });
    is_right.collect()
}

/// Returns the indices of all pairs of responses.
fn index_pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)))
}

/// Compares the final scores of two responses.
fn compare(order: &RecordedOrder, i: usize, j: usize) -> Ordering {
    order.scores.get(i).cmp(&order.scores.get(j))
}

/// Checks that every score has a complete analysis.
fn check_analyses(name: &str, scores: &ResponseScores) -> Result<(), Rejection> {
    let analyses = scores.analyses.as_deref().unwrap_or_default();
    if analyses.len() < scores.scores.len() || analyses.iter().any(|text| text.trim().is_empty()) {
        return Err(RejectReason::NoAnalysis.because(format!("{name}: a score has no analysis")));
    }
    if scores.cut.as_ref().is_some_and(|cut| cut.contains(&true)) {
        let message = format!("{name}: an analysis reached the token budget");
        return Err(RejectReason::CutAnalysis.because(message));
    }
    Ok(())
}

/// Returns a text without case, punctuation and repeated white space, to compare answers.
fn normalize(text: &str) -> String {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the place of the responses in one presentation order, for ids: `a-b` or `b-a`.
pub(super) fn shown_models(subject: &RecordSubject, order: &RecordedOrder) -> Vec<String> {
    let models = subject.judged_models();
    let shown = order.shown_responses().into_iter();
    shown.filter_map(|i| models.get(i).cloned()).collect()
}

//! A line with a decision of people: they accept a suggestion, or give their own evaluation.

use acem3_conclusion::Verdict;
use acem3_experts::prompt::{Form, Rubric};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::pair_evaluation::PairEvaluation;
use super::unresolved_file::NumberedSuggestion;
use crate::judging::judge::recorded_verdict::RecordedVerdict;

/// Texts that name a response by its number. They are wrong in one of the two presentation orders,
/// and a person's own evaluation is used in both.
const NUMBERED_RESPONSES: [&str; 10] = [
    "response 1",
    "response 2",
    "answer 1",
    "answer 2",
    "response b",
    "answer b",
    "first response",
    "second response",
    "first answer",
    "second answer",
];
/// Names of the first response that are names with a large letter only.
const LETTERED_RESPONSES: [(&str, [&str; 2]); 2] =
    [("response A", ["response A", "Response A"]), ("answer A", ["answer A", "Answer A"])];
/// Hint about the form of a decision.
const FORM_HINT: &str = "hint: set `decision` to `{\"accept\": N}` with the number of a suggestion, or to \
     `{\"evaluation\": {\"criteria\": ..., \"final\": ...}}`; leave it null if undecided";

/// A line of a file of decisions.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DecisionLine {
    /// Case id.
    pub(super) case: String,
    /// Models of the two responses.
    pub(super) pair: [String; 2],
    /// The suggestions that can be accepted.
    #[serde(default)]
    suggestions: Vec<NumberedSuggestion>,
    /// The decision; null if there is none.
    #[serde(default)]
    decision: Value,
}

/// A decision.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decision {
    /// Name of the person.
    #[serde(default)]
    pub(super) by: Option<String>,
    /// Number of the accepted suggestion.
    #[serde(default)]
    pub(super) accept: Option<usize>,
    /// The person's own evaluation.
    #[serde(default)]
    evaluation: Option<PairEvaluation>,
}

impl DecisionLine {
    /// Returns the decision; `None` if people have not decided yet.
    ///
    /// # Errors
    /// If the decision has another form.
    pub(super) fn decision(&self) -> Result<Option<Decision>> {
        if self.decision.is_null() {
            return Ok(None);
        }
        let decision: Decision =
            serde_json::from_value(self.decision.clone()).map_err(|error| {
                anyhow::anyhow!("the decision is incomplete or misspelt: {error}\n{FORM_HINT}")
            })?;
        match (decision.accept, &decision.evaluation) {
            (Some(_), None) | (None, Some(_)) => Ok(Some(decision)),
            (None, None) => {
                bail!("the decision has neither `accept` nor `evaluation`\n{FORM_HINT}")
            }
            (Some(_), Some(_)) => bail!(
                "the decision has `accept` and `evaluation`, expected one of them\n{FORM_HINT}"
            ),
        }
    }

    /// Returns the evaluation that people decide for. `labels`: the labelled final scores.
    ///
    /// # Errors
    /// If the accepted suggestion does not exist, or the evaluation is incomplete.
    pub(super) fn verdict(
        &self,
        decision: &Decision,
        labels: [f64; 2],
        rubric: &Rubric,
    ) -> Result<RecordedVerdict> {
        let orders = match (&decision.evaluation, decision.accept) {
            (Some(evaluation), _) => {
                check_no_numbers(evaluation)?;
                let orders =
                    [false, true].map(|swapped| evaluation.to_order(swapped, labels, rubric));
                orders.into_iter().collect::<Result<_>>().context("evaluation")?
            }
            (None, number) => {
                let number = number.unwrap_or_default();
                let suggestion = self.suggestion(number)?;
                let orders = suggestion.orders.iter();
                let orders = orders.map(|order| order.to_order(order.swapped, labels, rubric));
                orders.collect::<Result<_>>().with_context(|| format!("suggestion {number}"))?
            }
        };
        RecordedVerdict::from_verdict(&Verdict { orders }, Form::Pair)
    }

    /// Returns the suggestions that can be accepted.
    pub(super) fn suggestions(&self) -> &[NumberedSuggestion] {
        &self.suggestions
    }

    fn suggestion(&self, number: usize) -> Result<&NumberedSuggestion> {
        let found = self.suggestions.iter().find(|suggestion| suggestion.number == number);
        let Some(suggestion) = found else {
            let numbers: Vec<String> =
                self.suggestions.iter().map(|suggestion| suggestion.number.to_string()).collect();
            bail!(
                "accepts suggestion {number}, but the suggestions of this line are {}\n\
                 hint: correct the number, and keep `suggestions` as unresolved.jsonl has them",
                if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") }
            );
        };
        if suggestion.orders.is_empty() {
            bail!(
                "accepts suggestion {number}, which has no evaluation: {}\n\
                 hint: accept another one, or give an `evaluation`",
                suggestion.problem.as_deref().unwrap_or("the adviser gave none")
            );
        }
        Ok(suggestion)
    }
}

/// Returns the first name of a response by number, letter or place in a text, such as "response 1".
pub(crate) fn numbered_response(text: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_alphanumeric();
    let lower = text.to_lowercase();
    let has_name = |name: &str, text: &str| {
        text.match_indices(name).any(|(start, _)| {
            let (before, after) = (text.get(..start), text.get(start + name.len()..));
            !before.is_some_and(|before| before.ends_with(is_word))
                && !after.is_some_and(|after| after.starts_with(is_word))
        })
    };
    let numbered = NUMBERED_RESPONSES.into_iter().find(|name| has_name(name, &lower));
    // In "the answer a patient needs", the small letter is a word.
    let lettered = LETTERED_RESPONSES
        .into_iter()
        .find(|(_, names)| names.iter().any(|name| has_name(name, text)));
    numbered.or(lettered.map(|(name, _)| name))
}

/// Checks that the analyses do not name responses by number.
fn check_no_numbers(evaluation: &PairEvaluation) -> Result<()> {
    for analysis in evaluation.analyses() {
        if let Some(name) = numbered_response(analysis) {
            bail!(
                "an analysis names `{name}`, but the evaluation is used in both presentation orders\n\
                 hint: write \"this response\" and \"the other response\""
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_response_are_found() {
        for (text, expected) in [
            ("Response 1 is right.", Some("response 1")),
            ("Answer A is bad.", Some("answer A")),
            ("the second answer is good", Some("second answer")),
            ("See answer b.", Some("answer b")),
            ("This is the answer a patient needs.", None),
            ("This answer is right, the other answer 12 times.", None),
        ] {
            assert_eq!(numbered_response(text), expected, "{text}");
        }
    }
}

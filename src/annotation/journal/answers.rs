//! The answers of a rater about a task. Scores and preferences are in the order of the case, whichever
//! response the rater saw first.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::decision_answer::DecisionAnswer;

/// Which of two responses is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// The first response of the task.
    First,
    /// The second.
    Second,
    /// Both are equally good.
    Equal,
}

impl Preference {
    /// Returns the preference in results: `a` for the first, `b` for the second, or `tie`.
    pub fn letter(self) -> &'static str {
        match self {
            Self::First => "a",
            Self::Second => "b",
            Self::Equal => "tie",
        }
    }

    /// Returns the order of the responses: `Greater` if the first is better.
    pub fn order(self) -> Ordering {
        match self {
            Self::First => Ordering::Greater,
            Self::Second => Ordering::Less,
            Self::Equal => Ordering::Equal,
        }
    }

    /// Returns the value of the preference: 1 for the first, −1 for the second, 0 for none.
    pub fn value(self) -> f64 {
        f64::from(self.order() as i8)
    }

    /// Returns the preference with the responses exchanged.
    #[must_use]
    pub fn exchanged(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
            Self::Equal => Self::Equal,
        }
    }
}

/// Answers about a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswers {
    /// Scores by criterion, and the final score, by their keys: one for each response, `None` if the
    /// rater gave none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, Vec<Option<u8>>>,
    /// The better response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<Preference>,
    /// The decision about an unresolved pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionAnswer>,
    /// Comment of the rater.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Why the rater skipped the task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl TaskAnswers {
    /// Returns the score of a response.
    pub fn score(&self, key: &str, response: usize) -> Option<u8> {
        self.scores.get(key)?.get(response).copied().flatten()
    }

    /// Sets the score of a response of a task with `responses` responses.
    pub fn set_score(&mut self, key: &str, response: usize, responses: usize, score: u8) {
        let scores = self.scores.entry(key.to_owned()).or_insert_with(|| vec![None; responses]);
        if let Some(entry) = scores.get_mut(response) {
            *entry = Some(score);
        }
    }

    /// Returns the answers with the two responses exchanged, as another rater sees them.
    #[must_use]
    pub fn exchanged(&self) -> Self {
        let mut answers = self.clone();
        answers.scores.values_mut().for_each(|scores| scores.reverse());
        answers.preference = self.preference.map(Preference::exchanged);
        if let Some(DecisionAnswer::Own(analyses)) = &mut answers.decision {
            for analyses in analyses.values_mut() {
                analyses.reverse();
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanged_answers_follow_the_responses() {
        let mut answers =
            TaskAnswers { preference: Some(Preference::First), ..TaskAnswers::default() };
        answers.set_score("final", 0, 2, 5);
        answers.set_score("final", 2, 2, 5);
        let exchanged = answers.exchanged();
        assert_eq!((exchanged.score("final", 0), exchanged.score("final", 1)), (None, Some(5)));
        assert_eq!(exchanged.preference, Some(Preference::Second));
        assert_eq!(exchanged.exchanged(), answers);
    }
}

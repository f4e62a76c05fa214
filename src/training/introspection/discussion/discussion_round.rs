//! A round of a discussion: a suggestion of the adviser and what the reviewer says about it.

use serde::{Deserialize, Serialize};

use crate::judging::judge::recorded_verdict::RecordedVerdict;

/// What the reviewer says about a suggestion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SuggestionReview {
    /// Whether the reviewer accepts the suggestion; absent if it gave no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accepts: Option<bool>,
    /// Its reason, or the reason why it gave no answer.
    pub(crate) reason: String,
}

/// A round of a discussion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiscussionRound {
    /// Suggested verdict in all presentation orders; absent if the adviser gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suggestion: Option<RecordedVerdict>,
    /// Why there is no suggestion, or how it contradicts the labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// Review of a suggestion that agrees with the labels, if there is a reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<SuggestionReview>,
}

impl SuggestionReview {
    /// Creates a review without an answer.
    pub(crate) fn missing(reason: String) -> Self {
        Self { accepts: None, reason }
    }
}

impl DiscussionRound {
    /// Returns the reason for which the reviewer rejects the suggestion, if it does.
    pub(crate) fn objection(&self) -> Option<&str> {
        let review = self.review.as_ref()?;
        (review.accepts == Some(false)).then_some(review.reason.as_str())
    }

    /// Returns why the suggestion is not accepted, for people; `None` if it is.
    pub(crate) fn rejection(&self) -> Option<String> {
        if let Some(problem) = &self.problem {
            return Some(problem.clone());
        }
        let review = self.review.as_ref()?;
        match review.accepts {
            Some(true) => None,
            Some(false) => Some(format!("the reviewer rejects the suggestion: {}", review.reason)),
            None => Some(format!("no answer of the reviewer: {}", review.reason)),
        }
    }
}

//! Reasons why a negative cannot be derived, and how often each occurs.

use std::collections::BTreeMap;

use crate::support::text::format_count;
use crate::training::config::stage::negative::Negative;

/// Reason why a change gives no negative of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotApplicable {
    /// The evaluation has one response, and the change needs two.
    OneResponse,
    /// The scores of all responses are equal.
    EqualScores,
    /// The analyses of all responses are equal.
    EqualAnalyses,
    /// No analysis states the reference answer or what the image shows.
    NoReferenceStatement,
    /// The analyses are empty or have several lines.
    Malformed,
}

impl NotApplicable {
    /// Returns the reason as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::OneResponse => "one response",
            Self::EqualScores => "equal scores",
            Self::EqualAnalyses => "equal analyses",
            Self::NoReferenceStatement => "no statement of the reference",
            Self::Malformed => "empty analyses",
        }
    }
}

/// Numbers of evaluations to which a change did not apply, by change and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NegativeCounts {
    counts: BTreeMap<(usize, NotApplicable), u64>,
}

impl NegativeCounts {
    /// Counts an evaluation.
    pub(crate) fn add(&mut self, change: Negative, reason: NotApplicable) {
        let index = Negative::ALL.iter().position(|other| *other == change).unwrap_or_default();
        *self.counts.entry((index, reason)).or_default() += 1;
    }

    /// Returns a line for each change and reason.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.counts.iter().map(|((index, reason), count)| {
            let name = Negative::ALL.get(*index).map(|negative| negative.name());
            let evaluations = format_count(*count, "evaluation");
            format!(
                "{} does not apply to {evaluations}: {}",
                name.unwrap_or_default(),
                reason.text()
            )
        });
        lines.collect()
    }
}

//! Reasons why an evaluation of a run gives no preference pair.

use std::collections::BTreeMap;

use crate::support::text::format_count;
use crate::training::preferences::recorded_evaluations::MissingPart;

/// Reason why an evaluation gives no preference pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// The evaluation agrees with the labels.
    Right,
    /// The responses of the record have no final labels.
    Unlabelled,
    /// The record lacks something that the prompts or evaluations need.
    Missing(MissingPart),
    /// The teacher did not evaluate the same prompt or presentation.
    NoCorrection,
    /// The evaluation of the teacher contradicts the labels too.
    WrongCorrection,
    /// The aspect has no labels, and the teacher gives the same order.
    SameOrder,
    /// The image is not in the folder of the images.
    NoImage,
}

impl From<MissingPart> for SkipReason {
    fn from(part: MissingPart) -> Self {
        Self::Missing(part)
    }
}

impl SkipReason {
    /// Returns the reason as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Right => "they agree with the labels",
            Self::Unlabelled => "no final labels",
            Self::Missing(part) => part.text(),
            Self::NoCorrection => "no evaluation of the teacher",
            Self::WrongCorrection => "the teacher contradicts the labels too",
            Self::SameOrder => "no labels of the aspect, and the teacher gives the same order",
            Self::NoImage => "missing image (see --images)",
        }
    }
}

/// Numbers of evaluations without a preference pair, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedMistakes {
    counts: BTreeMap<SkipReason, u64>,
}

impl SkippedMistakes {
    /// Counts an evaluation, or a verdict that has none.
    pub(super) fn add(&mut self, reason: SkipReason) {
        *self.counts.entry(reason).or_default() += 1;
    }

    /// Returns the number of evaluations with this reason.
    pub fn count(&self, reason: SkipReason) -> u64 {
        self.counts.get(&reason).copied().unwrap_or_default()
    }

    /// Returns a line for each reason.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.counts.iter().map(|(reason, count)| {
            format!("{} without a pair: {}", format_count(*count, "evaluation"), reason.text())
        });
        lines.collect()
    }
}

//! Outcome of one pair under one image condition.

use acem3_conclusion::{Verdict, compare_scores};
use acem3_experts::Aspect;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

use super::held_out::PairFacts;
use crate::judging::judge::Unscored;
use crate::training::measurement::test_pair::ImageCondition;

/// Image that a judge saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShownImage {
    /// The image of the pair.
    Own,
    /// A grey image of the same size.
    Blank,
}

impl ShownImage {
    /// Both images, in judging order.
    pub(super) const ALL: [Self; 2] = [Self::Own, Self::Blank];

    /// Returns the condition of the measurement.
    pub(super) fn condition(self) -> ImageCondition {
        match self {
            Self::Own => ImageCondition::Original,
            Self::Blank => ImageCondition::Blank,
        }
    }

    /// Returns the name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own => "own image",
            Self::Blank => "blank image",
        }
    }
}

/// Accuracy of a verdict on a pair, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PairAccuracy {
    /// Whether the final order is right. With exact labels, ties included; otherwise by the expected
    /// final scores, where equal ones count ½.
    pub(super) order: f64,
    /// Whether the chosen final scores are in the right order; a tie is wrong unless the label is
    /// one.
    pub(super) chosen: f64,
    /// Whether the order in each aspect is right; `None` if unknown.
    pub(super) aspects: [Option<f64>; 3],
}

/// Line of the journal: a pair with its accuracy, or why it has no verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PairOutcome {
    /// Index of the pair.
    pub(super) pair: usize,
    /// Image that the judge saw.
    pub(super) image: ShownImage,
    /// Accuracy; `None` if the pair is unscored.
    pub(super) accuracy: Option<PairAccuracy>,
    /// Why the pair is unscored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unscored: Option<String>,
    /// Seconds of judging.
    pub(super) seconds: f64,
}

impl PairOutcome {
    /// Compares a verdict with what is known.
    pub(super) fn new(
        pair: usize,
        image: ShownImage,
        verdict: &Result<Verdict, Unscored>,
        facts: &PairFacts,
        is_exact: bool,
    ) -> Self {
        let (accuracy, unscored) = match verdict {
            Ok(verdict) => (Some(PairAccuracy::new(verdict, facts, is_exact)), None),
            Err(unscored) => {
                let message = format!("{}: {}", unscored.reason.name(), unscored.message);
                (None, Some(message))
            }
        };
        Self { pair, image, accuracy, unscored, seconds: 0.0 }
    }
}

impl PairAccuracy {
    fn new(verdict: &Verdict, facts: &PairFacts, is_exact: bool) -> Self {
        let right = |judged: Ordering, known| f64::from(u8::from(judged == known));
        let chosen = right(verdict.preference(), facts.order);
        let order = match compare_scores(verdict.expected_scores()) {
            _ if is_exact => chosen,
            Ordering::Equal => 0.5,
            judged => right(judged, facts.order),
        };
        let mut aspects = [None; 3];
        for ((value, aspect), known) in aspects.iter_mut().zip(Aspect::ALL).zip(facts.aspects) {
            *value = known.map(|known| right(compare_scores(verdict.aspect_scores(aspect)), known));
        }
        Self { order, chosen, aspects }
    }
}

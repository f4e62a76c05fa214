//! A pair that was changed and judged again, with the verdicts before and after.

use acem3_experts::Aspect;
use serde::{Deserialize, Serialize};

use super::probe::Perturbation;
use crate::analysis::audit::image_perturbation::ImagePerturbation;
use crate::judging::judge::Unscored;
use crate::judging::judge::recorded_verdict::{PairOrder, RecordedVerdict};

/// One changed pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditTrial {
    /// What was changed.
    pub change: Perturbation,
    /// The id of the case.
    pub case: String,
    /// The two models whose pair was changed.
    pub pair: [String; 2],
    /// What is drawn as a whole: the hash of the case's own image, or the case.
    pub cluster: String,
    /// The two answers that were judged.
    pub responses: [String; 2],
    /// The image that was shown.
    pub picture: ImagePerturbation,
    /// Which of the two answers was changed, from 0; `None` where both or neither.
    pub side: Option<usize>,
    /// The verdict on the pair as it was; `None` where it is unscored.
    pub before: Option<VerdictScores>,
    /// The verdict on the changed pair; `None` where it is unscored.
    pub after: Option<VerdictScores>,
    /// Why the changed pair has no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<Unscored>,
}

/// A verdict, as far as an audit compares it. Each pair of values is in the order of the answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictScores {
    /// Which answer is better.
    pub order: PairOrder,
    /// The final scores, 0 to 5.
    pub scores: [f64; 2],
    /// The expected final scores.
    pub expected: [f64; 2],
    /// The expected scores of medical knowledge, the mean over its criteria and the presentations.
    pub knowledge: [f64; 2],
    /// The final scores in each presentation.
    pub presentations: Vec<[f64; 2]>,
}

impl VerdictScores {
    /// What an audit compares of a judgement.
    pub fn of(judgement: &RecordedVerdict) -> Self {
        let (mut sum, mut n) = ([0.0; 2], 0.0);
        let aspects = judgement.orders.iter().flat_map(|order| &order.aspects);
        for (_, criteria) in aspects.filter(|(aspect, _)| **aspect == Aspect::MedicalKnowledge) {
            for marks in criteria.values() {
                sum = [0, 1].map(|r| sum[r] + marks.expected[r]);
                n += 1.0;
            }
        }
        let presented = judgement.orders.iter().map(|o| o.scores.map(f64::from));
        Self {
            order: judgement.order,
            scores: judgement.scores,
            expected: judgement.expected,
            // To four decimals, as all scores of records.
            knowledge: sum.map(|s: f64| (s / f64::max(n, 1.0) * 1e4).round() / 1e4),
            presentations: presented.collect(),
        }
    }

    /// The part of the presentations in which the two answers got different scores.
    pub fn not_tied(&self) -> Option<f64> {
        let differ = self
            .presentations
            .iter()
            .filter(|[a, b]| differ(*a, *b))
            .count();
        let n = self.presentations.len();
        (n > 0).then(|| differ as f64 / n as f64)
    }
}

impl AuditTrial {
    /// Both verdicts, where there are both.
    pub fn both(&self) -> Option<(&VerdictScores, &VerdictScores)> {
        Some((self.before.as_ref()?, self.after.as_ref()?))
    }
}

/// Whether two scores are not the same; they are written with four decimals.
pub(super) fn differ(a: f64, b: f64) -> bool {
    (a - b).abs() > 1e-6
}

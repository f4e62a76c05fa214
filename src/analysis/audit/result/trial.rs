//! A perturbed pair with the verdicts before and after.

use acem3_experts::Aspect;
use serde::{Deserialize, Serialize};

use crate::analysis::audit::perturbations::{
    ImagePerturbation, Perturbation, ReferencePerturbation,
};
use crate::judging::judge::Unscored;
use crate::judging::judge::recorded_verdict::{PairOrder, RecordedVerdict, pair_values};

/// A perturbed pair with the verdicts before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditTrial {
    /// The perturbation.
    #[serde(rename = "change")]
    pub perturbation: Perturbation,
    /// Id of the case.
    pub case: String,
    /// The two models of the pair.
    pub pair: [String; 2],
    /// Bootstrap cluster: the hash of the case's own image, or the case.
    pub cluster: String,
    /// The two responses that were judged.
    pub responses: [String; 2],
    /// The image that was judged.
    #[serde(rename = "picture")]
    pub image: ImagePerturbation,
    /// The reference that was shown, if the judge sees references; absent for the case's own one.
    #[serde(default, skip_serializing_if = "ReferencePerturbation::is_own")]
    pub reference: ReferencePerturbation,
    /// Index of the perturbed response; `None` if both or neither were perturbed.
    pub side: Option<usize>,
    /// Template and position of the planted text; absent for other perturbations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The verdict on the original pair; `None` if unscored.
    pub before: Option<VerdictScores>,
    /// The verdict on the perturbed pair; `None` if unscored.
    pub after: Option<VerdictScores>,
    /// Why the perturbed pair is unscored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<Unscored>,
}

/// The scores of a verdict that an audit compares, in the order of the responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictScores {
    /// The preferred response.
    pub order: PairOrder,
    /// The final scores, 0 to 5.
    pub scores: [f64; 2],
    /// The expected final scores.
    pub expected: [f64; 2],
    /// Expected scores of medical knowledge: mean over its criteria and the presentation orders.
    pub knowledge: [f64; 2],
    /// The final scores of each presentation order.
    pub presentations: Vec<[f64; 2]>,
}

impl VerdictScores {
    /// Extracts the scores of a verdict.
    pub fn from_verdict(verdict: &RecordedVerdict) -> Self {
        let (mut sum, mut n) = ([0.0; 2], 0.0);
        let aspects = verdict.orders.iter().flat_map(|order| &order.aspects);
        for (_, criteria) in aspects.filter(|(aspect, _)| **aspect == Aspect::MEDICAL_KNOWLEDGE) {
            for marks in criteria.values() {
                let expected = pair_values(&marks.expected);
                sum = [0, 1].map(|r| sum[r] + expected[r]);
                n += 1.0;
            }
        }
        let presentations = verdict.orders.iter().map(|o| pair_values(&o.scores));
        Self {
            order: verdict.order.unwrap_or(PairOrder::Tie),
            scores: pair_values(&verdict.scores),
            expected: pair_values(&verdict.expected),
            // Four decimals, like all scores in records.
            knowledge: sum.map(|s: f64| (s / f64::max(n, 1.0) * 1e4).round() / 1e4),
            presentations: presentations.collect(),
        }
    }

    /// Computes the proportion of presentations in which the two responses have different scores.
    pub fn not_tied_proportion(&self) -> Option<f64> {
        let untied = self.presentations.iter().filter(|[a, b]| scores_differ(*a, *b)).count();
        let n = self.presentations.len();
        (n > 0).then(|| untied as f64 / n as f64)
    }
}

impl AuditTrial {
    /// Returns the verdicts before and after, if both exist.
    pub fn verdicts(&self) -> Option<(&VerdictScores, &VerdictScores)> {
        Some((self.before.as_ref()?, self.after.as_ref()?))
    }
}

/// Returns true if two scores differ; records have four decimals.
pub(crate) fn scores_differ(a: f64, b: f64) -> bool {
    (a - b).abs() > 1e-6
}

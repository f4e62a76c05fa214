//! A pair whose verdict contradicts the labels.

use super::review::PairId;
use crate::judging::judge::JudgeJob;

/// Misjudged pair.
pub(crate) struct MisjudgedPair {
    /// The pair with its image.
    pub(crate) job: JudgeJob,
    /// Labelled final scores of the two responses.
    pub(crate) labels: [f64; 2],
}

impl MisjudgedPair {
    /// Returns the case id and the two models of the pair.
    pub(crate) fn id(&self) -> PairId {
        let case = &self.job.case;
        let model = |i: usize| {
            let response = case.responses.get(i);
            response.map(|response| response.model.clone())
        };
        let index = |r: usize| self.job.responses.get(r).copied();
        let models = [0, 1].map(|r| index(r).and_then(model).unwrap_or_default());
        (case.id.clone(), models)
    }
}

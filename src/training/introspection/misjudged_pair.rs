//! A pair that a panel judged wrong.

use super::review::PairId;
use crate::judging::judge::PairJob;

/// A pair that was judged wrong.
pub(super) struct MisjudgedPair {
    /// The pair.
    pub(super) job: PairJob,
    /// The final scores that people, or a rule, gave.
    pub(super) known: [f64; 2],
}

impl MisjudgedPair {
    /// The case and the models of the pair.
    pub(super) fn key(&self) -> PairId {
        let case = &self.job.case;
        let model = |i: usize| case.responses.get(i).map(|response| response.model.clone());
        let models = self.job.pair.map(|i| model(i).unwrap_or_default());
        (case.id.clone(), models)
    }
}

//! Verdicts with what people say of them: what the probes that judge nothing look at.

use std::cmp::Ordering;

use super::probe::Probe;
use super::result::Finding;
use super::{position, verbosity};
use crate::analysis::agreement::LabelledUnits;
use crate::analysis::audit::symmetry;
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// The verdicts of one judge.
#[derive(Clone, Debug)]
pub struct AuditVerdicts<'a> {
    /// The verdicts.
    pub verdicts: &'a Verdicts,
    /// Which response of each is better by its labels; as many as verdicts.
    pub labels: Vec<Option<Ordering>>,
    /// How intervals are drawn.
    pub bootstrap: Bootstrap,
}

impl<'a> AuditVerdicts<'a> {
    /// Verdicts with their labels on the response as a whole.
    pub fn new(
        verdicts: &'a Verdicts,
        units: Option<&LabelledUnits>,
        bootstrap: Bootstrap,
    ) -> Self {
        Self {
            labels: orders(verdicts, units),
            verdicts,
            bootstrap,
        }
    }

    /// Verdicts that are there, with their labels.
    pub(super) fn scored(&self) -> impl Iterator<Item = (&'a PairVerdict, Option<Ordering>)> {
        let all = self.verdicts.pairs.iter().zip(&self.labels);
        all.filter(|(verdict, _)| verdict.scores.is_some())
            .map(|(verdict, label)| (verdict, *label))
    }

    /// How many pairs are labelled.
    pub fn labelled(&self) -> usize {
        self.labels.iter().flatten().count()
    }

    /// What a probe finds in them; for one that has to judge again, that it has not run.
    pub fn find(&self, probe: Probe) -> Finding {
        if self.verdicts.unscored() == self.verdicts.pairs.len() {
            return Finding::not_run(probe, "no pair has a verdict");
        }
        match probe {
            Probe::Position => position::find(self),
            Probe::Verbosity => verbosity::find(self),
            Probe::Symmetry => symmetry::symmetry(self),
            Probe::SelfConsistency => symmetry::self_consistency(self),
            other => Finding::not_run(
                other,
                "records hold no images, and nothing can be judged again from them; give the cases",
            ),
        }
    }
}

/// Which response of each pair is better by its labels.
pub(super) fn orders(verdicts: &Verdicts, units: Option<&LabelledUnits>) -> Vec<Option<Ordering>> {
    let mut labels = vec![None; verdicts.pairs.len()];
    let of = units.and_then(|units| units.targets.get(&ScoreTarget::Final));
    for unit in of.map(|of| &of.pairs[..]).unwrap_or_default() {
        if let Some(label) = labels.get_mut(unit.verdict) {
            *label = unit.rated.order(None);
        }
    }
    labels
}

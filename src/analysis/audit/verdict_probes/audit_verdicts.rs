//! The verdicts of one judge with the labels of their pairs.

use std::cmp::Ordering;

use crate::analysis::agreement::LabelledUnits;
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// The verdicts of one judge with the labels of their pairs.
#[derive(Clone, Debug)]
pub struct AuditVerdicts<'a> {
    /// The verdicts.
    pub verdicts: &'a Verdicts,
    /// The better response of each pair by its labels; as many as verdicts.
    pub labels: Vec<Option<Ordering>>,
    /// Bootstrap settings of the intervals.
    pub bootstrap: Bootstrap,
}

impl<'a> AuditVerdicts<'a> {
    /// Joins verdicts with their labels on the final score.
    pub fn new(
        verdicts: &'a Verdicts,
        units: Option<&LabelledUnits>,
        bootstrap: Bootstrap,
    ) -> Self {
        Self {
            labels: label_orders(verdicts, units),
            verdicts,
            bootstrap,
        }
    }

    /// The scored pairs with their labels.
    pub(super) fn scored(&self) -> impl Iterator<Item = (&'a PairVerdict, Option<Ordering>)> {
        let all = self.verdicts.pairs.iter().zip(&self.labels);
        all.filter(|(verdict, _)| verdict.scores.is_some())
            .map(|(verdict, label)| (verdict, *label))
    }

    /// Number of labelled pairs.
    pub fn labelled(&self) -> usize {
        self.labels.iter().flatten().count()
    }
}

/// The better response of each pair by its labels.
pub(crate) fn label_orders(
    verdicts: &Verdicts,
    units: Option<&LabelledUnits>,
) -> Vec<Option<Ordering>> {
    let mut labels = vec![None; verdicts.pairs.len()];
    let of = units.and_then(|units| units.targets.get(&ScoreTarget::Final));
    for unit in of.map(|of| &of.pairs[..]).unwrap_or_default() {
        if let Some(label) = labels.get_mut(unit.verdict) {
            *label = unit.rated.order(None);
        }
    }
    labels
}

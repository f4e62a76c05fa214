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
    /// The better response of each verdict's pair by the labels.
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
        Self { labels: label_orders(verdicts, units), verdicts, bootstrap }
    }

    /// Returns the scored pairs with their labels.
    pub(super) fn scored_pairs(&self) -> impl Iterator<Item = (&'a PairVerdict, Option<Ordering>)> {
        let labelled = self.verdicts.pairs.iter().zip(&self.labels);
        labelled
            .filter(|(verdict, _)| verdict.scores.is_some())
            .map(|(verdict, label)| (verdict, *label))
    }

    /// Returns the number of labelled pairs.
    pub fn count_labelled(&self) -> usize {
        self.labels.iter().flatten().count()
    }
}

/// Returns the better response of each pair by its labels.
pub(crate) fn label_orders(
    verdicts: &Verdicts,
    units: Option<&LabelledUnits>,
) -> Vec<Option<Ordering>> {
    let mut labels = vec![None; verdicts.pairs.len()];
    let final_units = units.and_then(|units| units.targets.get(&ScoreTarget::Final));
    for unit in final_units.map(|units| &units.pairs[..]).unwrap_or_default() {
        if let Some(label) = labels.get_mut(unit.verdict) {
            *label = unit.ratings.order(None);
        }
    }
    labels
}

//! Counts of records, verdicts and unscored pairs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::analysis::report::record_summary::{OutcomeSummary, RecordSummary};
use crate::data::cases::UnscoredReason;

/// Counts over a judge's records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordCounts {
    /// Records: pairs, and cases without a pair.
    pub records: usize,
    /// Cases.
    pub cases: usize,
    /// Images.
    pub images: usize,
    /// Records with a verdict.
    pub judged: usize,
    /// Records without a verdict, by reason.
    pub unscored: BTreeMap<UnscoredReason, usize>,
    /// Pairs judged in both presentation orders.
    pub both_orders: usize,
    /// Pairs whose preferred response changes with the presentation order.
    pub flipped: usize,
    /// Verdicts without analyses (scores only).
    pub without_analyses: usize,
}

impl RecordCounts {
    /// Counts records.
    pub(super) fn of(seen: &[RecordSummary]) -> Self {
        let mut counts = Self {
            records: seen.len(),
            ..Self::default()
        };
        let (mut cases, mut images) = (BTreeSet::new(), BTreeSet::new());
        for one in seen {
            cases.extend(one.subject.case.as_deref());
            if one.subject.image.is_some() {
                images.insert(one.subject.cluster());
            }
            match &one.brief {
                OutcomeSummary::Judged { flip, .. } => {
                    counts.judged += 1;
                    counts.both_orders += usize::from(flip.is_some());
                    counts.flipped += usize::from(*flip == Some(true));
                    counts.without_analyses += usize::from(!one.analysed);
                }
                OutcomeSummary::Unscored { reason, .. } => {
                    *counts.unscored.entry(*reason).or_default() += 1;
                }
            }
        }
        (counts.cases, counts.images) = (cases.len(), images.len());
        counts
    }

    /// Returns the number of records without a verdict.
    pub fn all_unscored(&self) -> usize {
        self.unscored.values().sum()
    }
}

//! Counts of records, verdicts and unscored pairs.

use std::collections::{BTreeMap, BTreeSet};

use acem3_experts::prompt::Form;
use serde::Serialize;

use crate::analysis::report::verdicts::record_summary::{OutcomeSummary, RecordSummary};
use crate::data::cases::UnscoredReason;

/// Counts over a judge's records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordCounts {
    /// The form of judging; absent for pairs.
    #[serde(skip_serializing_if = "Form::is_pair")]
    pub form: Form,
    /// Number of records: pairs or responses, and cases without them.
    pub records: usize,
    /// Number of cases.
    pub cases: usize,
    /// Number of images.
    pub images: usize,
    /// Number of records with a verdict.
    pub judged: usize,
    /// Number of records without a verdict, by reason.
    pub unscored: BTreeMap<UnscoredReason, usize>,
    /// Number of pairs judged in both presentation orders.
    pub both_orders: usize,
    /// Number of pairs whose preferred response changes with the presentation order.
    pub flipped: usize,
    /// Number of verdicts without analyses (scores only).
    pub without_analyses: usize,
}

impl RecordCounts {
    /// Counts records.
    pub(crate) fn from_summaries(summaries: &[RecordSummary]) -> Self {
        let form = summaries.first().map_or(Form::Pair, |summary| summary.subject.form);
        let mut counts = Self { form, records: summaries.len(), ..Self::default() };
        let (mut cases, mut images) = (BTreeSet::new(), BTreeSet::new());
        for summary in summaries {
            cases.extend(summary.subject.case.as_deref());
            if summary.subject.image.is_some() {
                images.insert(summary.subject.cluster());
            }
            match &summary.outcome {
                OutcomeSummary::Judged { flip, .. } => {
                    counts.judged += 1;
                    counts.both_orders += usize::from(flip.is_some());
                    counts.flipped += usize::from(*flip == Some(true));
                    counts.without_analyses += usize::from(!summary.has_analyses);
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
    pub fn count_unscored(&self) -> usize {
        self.unscored.values().sum()
    }
}

//! Accuracy of a panel's verdicts against labels.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use acem3_conclusion::compare_scores;
use anyhow::{Result, bail};

use crate::judging::run::record::RecordOutcome;
use crate::judging::run::record::record_reader::open_records;
use crate::training::measurement::{Proportion, proportion_with_interval};

/// Case id and the two models of a pair.
pub(crate) type PairId = (String, [String; 2]);

/// Returns the error for cases without labels.
pub(crate) fn no_labels_error(path: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "{}: no pair has final labels, expected some to compare verdicts with\n\
         hint: give the cases `\"labels\": {{\"final\": [a, b]}}`, one score for each response",
        path.display()
    )
}

/// Comparison of verdicts with labelled final scores.
#[derive(Clone, Debug)]
pub(crate) struct Review {
    /// Order accuracy. A tie counts as an order.
    pub(crate) accuracy: Proportion,
    /// Misjudged pairs with their labelled final scores.
    pub(crate) misjudged: BTreeMap<PairId, [f64; 2]>,
    /// Number of labelled pairs without a verdict.
    pub(crate) unscored: usize,
    /// Number of pairs without labels.
    pub(crate) unlabelled: usize,
}

impl Review {
    /// Compares the records of a run with their labels.
    ///
    /// # Errors
    /// If a record is damaged or missing, no labelled pair has a verdict, or no pair has labels.
    pub(crate) fn from_records(folder: &Path) -> Result<Self> {
        let (mut values, mut misjudged) = (Vec::new(), BTreeMap::new());
        let (mut unscored, mut unlabelled, mut first_reason) = (0, 0, None);
        let mut records = open_records(folder)?;
        for record in records.by_ref() {
            let record = record?;
            let subject = &record.subject;
            let (Some(case), Some(pair)) = (&subject.case, &subject.pair) else {
                continue;
            };
            let final_labels =
                subject.labels.as_ref().and_then(|labels| labels.final_scores.as_deref());
            let final_labels = final_labels.and_then(|labels| <[f64; 2]>::try_from(labels).ok());
            match (final_labels, record.verdict()) {
                (Some(labels), Some(verdict)) => {
                    let order = verdict.order.map_or(Ordering::Equal, Ordering::from);
                    let agrees = order == compare_scores(labels);
                    let cluster = subject.cluster().short_name();
                    values.push((cluster, f64::from(u8::from(agrees))));
                    if !agrees {
                        misjudged.insert((case.clone(), pair.clone()), labels);
                    }
                }
                (Some(_), None) => {
                    unscored += 1;
                    if let RecordOutcome::Unscored(reason) = record.outcome {
                        first_reason.get_or_insert(reason.message);
                    }
                }
                (None, _) => unlabelled += 1,
            }
        }
        if let Some(found) = records.state().problems.first() {
            bail!("{}\nhint: run the same command again", found.problem);
        }
        if let (true, Some(reason)) = (values.is_empty(), first_reason) {
            bail!("{}: no pair has a verdict; first reason: {reason}", folder.display());
        }
        let Some(accuracy) = proportion_with_interval(&values) else {
            return Err(no_labels_error(folder));
        };
        Ok(Self { accuracy, misjudged, unscored, unlabelled })
    }
}

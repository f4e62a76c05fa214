//! Accuracy of a panel's verdicts against labels.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use acem3_conclusion::compare;
use anyhow::{Result, bail};

use crate::judging::run::record::RecordOutcome;
use crate::judging::run::record_reader::records;
use crate::training::measurement::{Proportion, share};

/// The case and the two models of a pair.
pub(super) type PairId = (String, [String; 2]);

/// Returns the error for cases without labels.
pub(super) fn nothing_known(path: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "{}: no pair has final labels, expected some to compare verdicts with\n\
         hint: give the cases `\"labels\": {{\"final\": [a, b]}}`, one score of 0 to 5 for each response",
        path.display()
    )
}

/// Comparison of verdicts with labelled final scores.
#[derive(Clone, Debug)]
pub(super) struct Review {
    /// Order accuracy; a tie is an order.
    pub(super) right: Proportion,
    /// Misjudged pairs with their labelled final scores.
    pub(super) wrong: BTreeMap<PairId, [f64; 2]>,
    /// Number of labelled pairs without a verdict.
    pub(super) unscored: usize,
    /// Number of pairs without labels.
    pub(super) unknown: usize,
}

impl Review {
    /// Compares the records of a run with their labels.
    ///
    /// # Errors
    /// If no labelled pair has a verdict, or no pair has labels.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let (mut values, mut wrong) = (Vec::new(), BTreeMap::new());
        let (mut unscored, mut unknown, mut first) = (0, 0, None);
        for record in records(folder)? {
            let record = record?;
            let subject = &record.subject;
            let (Some(case), Some(pair)) = (&subject.case, &subject.pair) else {
                continue;
            };
            let last = subject
                .labels
                .as_ref()
                .and_then(|labels| labels.last.as_deref());
            let known = last.and_then(|last| <[f64; 2]>::try_from(last).ok());
            match (known, record.judgement()) {
                (Some(known), Some(judgement)) => {
                    let right = Ordering::from(judgement.order) == compare(known);
                    values.push((subject.cluster().short_name(), f64::from(u8::from(right))));
                    if !right {
                        wrong.insert((case.clone(), pair.clone()), known);
                    }
                }
                (Some(_), None) => {
                    unscored += 1;
                    if let RecordOutcome::Unscored(why) = record.outcome {
                        first.get_or_insert(why.message);
                    }
                }
                (None, _) => unknown += 1,
            }
        }
        if let (true, Some(why)) = (values.is_empty(), first) {
            bail!(
                "{}: no pair has a verdict; first reason: {why}",
                folder.display()
            );
        }
        let Some(right) = share(&values) else {
            return Err(nothing_known(folder));
        };
        Ok(Self {
            right,
            wrong,
            unscored,
            unknown,
        })
    }
}

//! What a panel's verdicts are worth beside what people said.

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

/// Nothing is said of which response is better.
pub(super) fn nothing_known(path: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "{}: nothing is known of any of its pairs, to tell right from wrong by\n\
         hint: give the cases `\"labels\": {{\"final\": [a, b]}}`, one score of 0 to 5 for each response",
        path.display()
    )
}

/// Verdicts held to known final scores.
#[derive(Clone, Debug)]
pub(super) struct Review {
    /// How many orders are right, a tie being an order.
    pub(super) right: Proportion,
    /// The pairs that were judged wrong, with the final scores that are known of them.
    pub(super) wrong: BTreeMap<PairId, [f64; 2]>,
    /// Pairs with known scores and no verdict.
    pub(super) unscored: usize,
    /// Verdicts of which nothing is known.
    pub(super) unknown: usize,
}

impl Review {
    /// Reads the records of a run.
    ///
    /// # Errors
    /// Where there is no verdict, and where nothing is known of any.
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
                "{}: there is not one verdict; of the first pair: {why}",
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

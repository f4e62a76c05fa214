//! Counts of a run, for the manifest and the summary.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::cases::UnscoredReason;

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Readable cases.
    pub cases: u64,
    /// Unreadable cases.
    pub unreadable: u64,
    /// Responses and fields left out of their cases, and unusable answer lines.
    #[serde(default)]
    pub left_out: u64,
    /// All records: pairs, cases without a pair, and noted problems.
    pub records: u64,
    /// Records with a verdict.
    pub judged: u64,
    /// Unscored records by reason.
    pub unscored: BTreeMap<UnscoredReason, u64>,
    /// Pairs without a verdict that have no record of their own, because most responses of their
    /// case are missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted_pairs: u64,
    /// Noted records.
    #[serde(default)]
    pub noted: u64,
    /// Cases judged without an image because it is in an unknown field; part of `noted`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored_images: u64,
    /// Records with a verdict from an earlier run.
    pub reused: u64,
    /// Verdicts for which the judge looked something up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub looked_up: u64,
}

impl RunCounts {
    /// Returns the number of unscored records.
    pub fn unscored_total(&self) -> u64 {
        self.unscored.values().sum()
    }

    /// Returns the number of judged and unscored records.
    pub fn judged_or_unscored(&self) -> u64 {
        self.judged + self.unscored_total()
    }

    /// Returns the percentage of unscored records among judged and unscored ones. Pairs without a
    /// record of their own count, too.
    pub fn unscored_percent(&self) -> f64 {
        let unscored = self.unscored_total() + self.unlisted_pairs;
        100.0 * unscored as f64 / (self.judged + unscored).max(1) as f64
    }

    /// Returns the percentage of unreadable cases. With many models, an unreadable case has one
    /// record, and a readable one has many.
    pub fn unreadable_percent(&self) -> f64 {
        100.0 * self.unreadable as f64 / (self.cases + self.unreadable).max(1) as f64
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

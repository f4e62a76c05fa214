//! What changed between two runs: shared by reports on pairs and on correctness.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

/// Largest difference of equal values; records have four decimals.
pub(super) const EQUAL: f64 = 5e-5;

/// Kind of a change, the most important first.
pub trait ChangeTitle: Copy + Ord + 'static {
    /// All kinds.
    const ALL: &'static [Self];

    /// Returns the name in tables.
    fn title(self) -> &'static str;
}

/// A record with another outcome than in the earlier run.
pub trait RecordChange {
    /// The kinds of changes.
    type Kind: ChangeTitle;

    /// Returns what changed.
    fn kind(&self) -> Self::Kind;
}

/// What changed since an earlier run. `C`: a changed pair or response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison<C> {
    /// Name of the judge of the earlier run.
    pub name: String,
    /// Hash of that judge, as in its records.
    pub judge: String,
    /// Path of its records.
    pub records: String,
    /// Number of pairs or responses of both runs.
    pub common: usize,
    /// Number of those that only this run has.
    pub only_new: usize,
    /// Number of those that only the earlier run has.
    pub only_earlier: usize,
    /// The changes, in the order of the records.
    pub changes: Vec<C>,
    /// Results of each model over the pairs or responses that have a verdict in both runs.
    pub models: Vec<ModelChange>,
}

/// Result of a model in both runs: its mean score, or its accuracy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelChange {
    /// Name of the model.
    pub model: String,
    /// Number of pairs or responses with a verdict in both runs.
    pub n: usize,
    /// Result in the earlier run.
    pub before: f64,
    /// Result in this run.
    pub after: f64,
}

impl<C> RunComparison<C> {
    /// Creates a comparison with an earlier run that has no changes yet.
    pub(super) fn with_earlier(name: &str, judge: &str, records: &Path) -> Self {
        Self {
            name: name.to_owned(),
            judge: judge.to_owned(),
            records: records.display().to_string(),
            common: 0,
            only_new: 0,
            only_earlier: 0,
            changes: Vec::new(),
            models: Vec::new(),
        }
    }

    /// Checks that the runs have a pair or response in common. `records`: the records of this run.
    ///
    /// # Errors
    ///
    /// No pair or response is in both runs.
    pub fn check_common(&self, records: &Path) -> Result<()> {
        if self.common > 0 {
            return Ok(());
        }
        bail!(
            "--baseline {}: nothing in common with {}: no case has the same id and models in both\n\
             hint: pass an earlier run on the same cases",
            self.records,
            records.display()
        )
    }
}

impl<C: RecordChange> RunComparison<C> {
    /// Counts the changes of a kind.
    pub fn count(&self, kind: C::Kind) -> usize {
        self.changes.iter().filter(|change| change.kind() == kind).count()
    }
}

//! A pair of responses that an audit judges.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::data::cases::Case;

/// A pair of responses of a case.
#[derive(Clone, Debug)]
pub struct AuditPair {
    /// The case.
    pub case: Arc<Case>,
    /// Indices of the two responses.
    pub pair: [usize; 2],
    /// Bootstrap cluster.
    pub cluster: String,
    /// The better response by the labels.
    pub label: Option<Ordering>,
}

impl AuditPair {
    /// Returns the texts of the two responses.
    pub fn texts(&self) -> [String; 2] {
        let text = |i: usize| self.case.responses.get(i).map(|r| r.text.clone());
        self.pair.map(|i| text(i).unwrap_or_default())
    }

    /// Returns the names of the two models.
    pub fn models(&self) -> [String; 2] {
        let model = |i: usize| self.case.responses.get(i).map(|r| r.model.clone());
        self.pair.map(|i| model(i).unwrap_or_default())
    }

    /// Returns the reference of the case, unless it is blank.
    pub(super) fn reference(&self) -> Option<&str> {
        self.case.reference.as_deref().filter(|text| !text.trim().is_empty())
    }

    /// Returns a correct response: the reference, or the better response by the labels.
    pub(super) fn correct_response(&self) -> Option<String> {
        let [first, second] = self.texts();
        let better = match self.label {
            Some(Ordering::Greater) => Some(first),
            Some(Ordering::Less) => Some(second),
            _ => None,
        };
        self.reference().map(str::to_owned).or(better)
    }
}

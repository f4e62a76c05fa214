//! Pairs without a verdict that are too many to be listed one by one.
//!
//! A case with n responses has n (n − 1) / 2 pairs. If two of 2,000 responses are not empty, one
//! pair can be judged and two million cannot, all for the same few reasons.

use std::sync::Arc;

/// The pairs of a missing response, which cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffectedPairs {
    /// The pairs; none if no response is affected.
    Listed(Box<[[String; 2]]>),
    /// The pairs are too many to be listed; the responses of the case.
    Unlisted(Arc<UnlistedPairs>),
}

impl AffectedPairs {
    /// Returns the listed pairs.
    pub(super) fn listed(&self) -> &[[String; 2]] {
        match self {
            Self::Listed(pairs) => pairs,
            Self::Unlisted(_) => &[],
        }
    }

    /// Returns the responses of the case, if the pairs are not listed.
    pub(super) fn unlisted(&self) -> Option<Arc<UnlistedPairs>> {
        match self {
            Self::Listed(_) => None,
            Self::Unlisted(unlisted) => Some(Arc::clone(unlisted)),
        }
    }
}

impl Default for AffectedPairs {
    fn default() -> Self {
        Self::Listed(Box::default())
    }
}

/// The models of a case in which most responses are missing, so that the pairs without a verdict
/// are many times those with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedPairs {
    /// Models whose response can be judged.
    pub present: Vec<String>,
    /// Models whose response is missing.
    pub missing: Vec<String>,
}

/// Number of pairs without a verdict that are always listed in a case.
const MAX_LISTED_PAIRS: usize = 100;
/// Number of pairs without a verdict that are listed for each pair that is judged.
const LISTED_PER_JUDGED_PAIR: usize = 4;

/// Returns true if the pairs of missing responses are listed one by one: they are few, or in
/// proportion to the pairs of the other responses.
pub(crate) fn lists_pairs(present: usize, missing: usize) -> bool {
    let pairs_of = |n: usize| n * n.saturating_sub(1) / 2;
    let without_verdict = missing * present + pairs_of(missing);
    without_verdict <= MAX_LISTED_PAIRS.max(LISTED_PER_JUDGED_PAIR * pairs_of(present))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_listed_in_proportion_to_the_judged_ones() {
        for (present, missing, expected) in
            [(2, 1, true), (0, 14, true), (0, 15, false), (35, 5, true), (20, 20, true)]
        {
            assert_eq!(lists_pairs(present, missing), expected, "{present} {missing}");
        }
        assert!(!lists_pairs(10, 30) && !lists_pairs(2, 1998) && !lists_pairs(45, 1955));
    }
}

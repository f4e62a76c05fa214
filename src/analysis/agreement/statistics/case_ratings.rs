//! Ratings of cases, with equal ones stored once.

use std::collections::HashMap;

/// The ratings of one case.
#[derive(Clone, Debug)]
pub(crate) struct CaseRatings {
    /// Raters with their ratings.
    pub(crate) ratings: Vec<(u32, f64)>,
    /// Consensus of the other raters, for each rater in `ratings`.
    pub(crate) consensus_of_others: Vec<Option<f64>>,
}

/// Ratings of many cases. Cases with equal ratings share one entry. Scores and preferences have few
/// distinct values, so thousands of cases have only hundreds of entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct DistinctRatings {
    /// The entries.
    pub(crate) distinct: Vec<CaseRatings>,
    /// For each case, the index of its entry.
    indices: Vec<u32>,
}

impl DistinctRatings {
    /// Collects the ratings of cases.
    pub(crate) fn new(all: impl Iterator<Item = CaseRatings>) -> Self {
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut ratings = Self::default();
        for case in all {
            let next = known.len() as u32;
            let index = *known.entry(case.key()).or_insert(next);
            if index == next {
                ratings.distinct.push(case);
            }
            ratings.indices.push(index);
        }
        ratings
    }

    /// Returns the number of cases.
    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns the index of the entry of a case.
    pub(crate) fn index_of(&self, case: usize) -> usize {
        self.indices[case] as usize
    }

    /// Computes the weight of each entry: the sum of the weights of its cases.
    pub(crate) fn weights(&self, case_weights: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; self.distinct.len()];
        for (index, weight) in self.indices.iter().zip(case_weights) {
            weights[*index as usize] += weight;
        }
        weights
    }
}

impl CaseRatings {
    /// Returns a key that is equal for equal ratings.
    fn key(&self) -> Vec<u64> {
        let ratings =
            self.ratings.iter().flat_map(|(rater, value)| [u64::from(*rater), value.to_bits()]);
        let others =
            self.consensus_of_others.iter().map(|value| value.map_or(u64::MAX, f64::to_bits));
        ratings.chain(others).collect()
    }
}

//! Ratings of cases, with equal ones stored once.

use std::collections::HashMap;

/// The ratings of one case.
#[derive(Clone, Debug)]
pub(super) struct CaseRatings {
    /// Each rater with the rating.
    pub(super) by: Vec<(u32, f64)>,
    /// For each of these raters, the consensus of the others.
    pub(super) others: Vec<Option<f64>>,
}

/// Ratings of many cases. Scores and orders have few values, so thousands of cases have some hundred
/// distinct ratings.
#[derive(Clone, Debug, Default)]
pub(super) struct DistinctRatings {
    /// The distinct ratings.
    pub(super) distinct: Vec<CaseRatings>,
    /// The index of the ratings of each case.
    indices: Vec<u32>,
}

impl DistinctRatings {
    /// Collects the ratings of cases.
    pub(super) fn new(all: impl Iterator<Item = CaseRatings>) -> Self {
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut ratings = Self::default();
        for one in all {
            let next = known.len() as u32;
            let index = *known.entry(one.key()).or_insert(next);
            if index == next {
                ratings.distinct.push(one);
            }
            ratings.indices.push(index);
        }
        ratings
    }

    /// Number of cases.
    pub(super) fn len(&self) -> usize {
        self.indices.len()
    }

    /// The index of the ratings of a case.
    pub(super) fn index_of(&self, case: usize) -> usize {
        self.indices[case] as usize
    }

    /// The weight of each distinct rating: the sum of the weights of its cases.
    pub(super) fn weights(&self, cases: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; self.distinct.len()];
        for (index, weight) in self.indices.iter().zip(cases) {
            weights[*index as usize] += weight;
        }
        weights
    }
}

impl CaseRatings {
    /// Equal for equal ratings.
    fn key(&self) -> Vec<u64> {
        let own = self
            .by
            .iter()
            .flat_map(|(rater, value)| [u64::from(*rater), value.to_bits()]);
        let others = self
            .others
            .iter()
            .map(|value| value.map_or(u64::MAX, f64::to_bits));
        own.chain(others).collect()
    }
}

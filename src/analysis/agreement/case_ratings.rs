//! What raters say of cases, equal opinions being held once.

use std::collections::HashMap;

/// What raters say of one case.
#[derive(Clone, Debug)]
pub(super) struct CaseRatings {
    /// Each rater, and what they say.
    pub(super) by: Vec<(u32, f64)>,
    /// For each of them, what the others say together.
    pub(super) others: Vec<Option<f64>>,
}

/// Opinions on cases. Scores and orders are few, so that thousands of cases have some hundred opinions.
#[derive(Clone, Debug, Default)]
pub(super) struct DistinctRatings {
    /// The distinct ones.
    pub(super) distinct: Vec<CaseRatings>,
    /// The opinion on each case, as a place among them.
    of: Vec<u32>,
}

impl DistinctRatings {
    pub(super) fn new(all: impl Iterator<Item = CaseRatings>) -> Self {
        let mut places: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut opinions = Self::default();
        for opinion in all {
            let next = places.len() as u32;
            let place = *places.entry(opinion.key()).or_insert(next);
            if place == next {
                opinions.distinct.push(opinion);
            }
            opinions.of.push(place);
        }
        opinions
    }

    /// How many cases there are.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// The opinion on a case, as a place among the distinct ones.
    pub(super) fn of(&self, case: usize) -> usize {
        self.of[case] as usize
    }

    /// The weight of each distinct opinion, from that of each case.
    pub(super) fn weights(&self, cases: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; self.distinct.len()];
        for (place, weight) in self.of.iter().zip(cases) {
            weights[*place as usize] += weight;
        }
        weights
    }
}

impl CaseRatings {
    /// Equal for equal opinions.
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

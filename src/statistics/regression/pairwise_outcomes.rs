//! Wins and ties of pairs of models.

use std::cmp::Ordering;

use crate::statistics::undefined::{Defined, require_at_least};

/// Wins and ties of each pair of models.
#[derive(Clone, Debug, PartialEq)]
pub struct PairwiseOutcomes {
    models: usize,
    /// Wins of `i` against `j`, at index `i · models + j`.
    wins: Vec<f64>,
    /// Ties of `i` and `j`; symmetric.
    ties: Vec<f64>,
}

/// Counts of two models that were compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OutcomeCounts {
    /// Index of the first model, which is larger than that of the second.
    pub(super) first: usize,
    /// Index of the second model.
    pub(super) second: usize,
    /// Wins of the first model.
    pub(super) won: f64,
    /// Wins of the second model.
    pub(super) lost: f64,
    /// Ties.
    pub(super) tied: f64,
}

impl PairwiseOutcomes {
    /// Counts comparisons of pairs of models, each with the weight of its case.
    pub fn new(models: usize, pairs: &[([usize; 2], Ordering)], weights: &[f64]) -> Self {
        let empty = vec![0.0; models * models];
        let mut outcomes = Self { models, wins: empty.clone(), ties: empty };
        for (([i, j], order), weight) in pairs.iter().zip(weights) {
            match order {
                Ordering::Greater => outcomes.wins[i * models + j] += weight,
                Ordering::Less => outcomes.wins[j * models + i] += weight,
                Ordering::Equal => {
                    outcomes.ties[i * models + j] += weight;
                    outcomes.ties[j * models + i] += weight;
                }
            }
        }
        outcomes
    }

    /// Returns the number of models.
    pub fn models(&self) -> usize {
        self.models
    }

    /// Returns the wins of `i` against `j`.
    pub fn wins(&self, i: usize, j: usize) -> f64 {
        self.wins[i * self.models + j]
    }

    /// Returns the ties of `i` and `j`.
    pub fn ties(&self, i: usize, j: usize) -> f64 {
        self.ties[i * self.models + j]
    }

    /// Computes the win rate of each model; a tie counts as half a win. The rate of a model without
    /// comparisons is an error.
    pub fn win_rates(&self) -> Vec<Defined<f64>> {
        let mut sums = vec![[0.0; 3]; self.models];
        for i in 0..self.models {
            for j in 0..self.models {
                let wins = self.wins(i, j);
                sums[i][0] += wins;
                sums[j][1] += wins;
                sums[i][2] += self.ties(i, j);
            }
        }
        let rate = |[won, lost, tied]: [f64; 3]| {
            let all = won + lost + tied;
            require_at_least(1, all as usize, ["comparison", "comparisons"])?;
            Ok((won + tied / 2.0) / all)
        };
        sums.into_iter().map(rate).collect()
    }

    /// Returns the counts of all pairs of models that were compared.
    pub(super) fn counts(&self) -> Vec<OutcomeCounts> {
        let pairs = (0..self.models).flat_map(|i| (0..i).map(move |j| (i, j)));
        let counts = pairs.map(|(first, second)| OutcomeCounts {
            first,
            second,
            won: self.wins(first, second),
            lost: self.wins(second, first),
            tied: self.ties(first, second),
        });
        counts.filter(|counts| counts.won + counts.lost + counts.tied > 0.0).collect()
    }

    /// Returns true if any pair is a tie.
    pub(super) fn has_ties(&self) -> bool {
        self.ties.iter().any(|n| *n > 0.0)
    }

    /// Returns true if values exist that are at least 1 apart for a win and at most 1 apart for a
    /// tie. In this direction, with ln ν growing by half as much, no outcome becomes less likely,
    /// so the likelihood of the Davidson model has no maximum.
    ///
    /// These are difference constraints: they can be met unless a cycle has a negative sum, −1 for
    /// a win and +1 for a tie (Bellman–Ford).
    pub(super) fn separates_wins_from_ties(&self) -> bool {
        let pairs = (0..self.models).flat_map(|i| (0..self.models).map(move |j| (i, j)));
        let mut constraints: Vec<(usize, usize, i64)> = Vec::new();
        for (i, j) in pairs {
            if self.wins(i, j) > 0.0 {
                if self.wins(j, i) > 0.0 {
                    return false;
                }
                constraints.push((i, j, -1));
            }
            if self.ties(i, j) > 0.0 {
                constraints.push((i, j, 1));
            }
        }
        let mut values = vec![0_i64; self.models];
        for _ in 0..=self.models {
            let mut is_stable = true;
            for (i, j, distance) in &constraints {
                let bound = values[*i] + distance;
                if values[*j] > bound {
                    values[*j] = bound;
                    is_stable = false;
                }
            }
            if is_stable {
                return true;
            }
        }
        false
    }

    /// Returns true if a chain of wins and ties leads from the first model to every other one; with
    /// `back`, from every other one to the first.
    pub(super) fn is_connected(&self, back: bool) -> bool {
        let mut reached = vec![false; self.models];
        let mut open = vec![0];
        while let Some(i) = open.pop() {
            if std::mem::replace(&mut reached[i], true) {
                continue;
            }
            let wins = |j: usize| if back { self.wins(j, i) } else { self.wins(i, j) };
            let next = (0..self.models).filter(|&j| !reached[j]);
            open.extend(next.filter(|&j| wins(j) + self.ties(i, j) > 0.0));
        }
        reached.into_iter().all(|reached| reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tie_counts_as_half_a_win() {
        let pairs = [([0, 1], Ordering::Equal), ([0, 1], Ordering::Less)];
        let rates = PairwiseOutcomes::new(3, &pairs, &[1.0; 2]).win_rates();
        assert!((rates[0].unwrap() - 0.25).abs() < 1e-12);
        assert!((rates[1].unwrap() - 0.75).abs() < 1e-12);
        assert!(rates[2].is_err());
    }
}

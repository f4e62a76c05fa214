//! Verdict on one pair: the result of each presentation order, and their combination.

use std::cmp::Ordering;

use acem3_experts::{Aspect, BranchEvaluation, Criterion, Rating};

/// Result of one presentation order. Values are in the order of the *pair*, regardless of which
/// response the judge saw first.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderVerdict {
    /// True if the judge saw the second response first.
    pub swapped: bool,
    /// The three branch evaluations in the order of [`Aspect::ALL`].
    pub branches: Vec<BranchEvaluation>,
    /// The conclusion model's analysis and final score of each response.
    pub conclusion: [Rating; 2],
}

impl OrderVerdict {
    /// Compares the final scores: `Greater` if the judge prefers the first response.
    pub fn preference(&self) -> Ordering {
        self.conclusion[0].score.value.cmp(&self.conclusion[1].score.value)
    }
}

/// Combined result of a pair. Two presentation orders have the same weight, so the result does not
/// depend on which response the judge sees first.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// One or both presentation orders.
    pub orders: Vec<OrderVerdict>,
}

impl Verdict {
    /// Returns the final score of each response, 0 to 5: the mean over the presentation orders.
    pub fn scores(&self) -> [f64; 2] {
        self.mean(|o, r| f64::from(o.conclusion[r].score.value))
    }

    /// Returns the mean expected final score of each response, 0 to 5.
    pub fn expected_scores(&self) -> [f64; 2] {
        self.mean(|o, r| o.conclusion[r].score.expected())
    }

    /// Compares the combined final scores: `Greater` if the judge prefers the first response.
    pub fn preference(&self) -> Ordering {
        compare_scores(self.scores())
    }

    /// Returns the mean score of an aspect for each response, 0 to 5.
    pub fn aspect_scores(&self, aspect: Aspect) -> [f64; 2] {
        let aspect_score = |o: &OrderVerdict, r: usize| {
            o.branches.iter().find(|b| b.aspect == aspect).map_or(0.0, |b| b.means()[r])
        };
        self.mean(aspect_score)
    }

    /// Returns the mean score of a criterion for each response, 0 to 5.
    pub fn criterion_scores(&self, criterion: Criterion) -> [f64; 2] {
        self.rating_mean(criterion, |rating| f64::from(rating.score.value))
    }

    /// Returns the mean expected score of a criterion for each response, 0 to 5.
    pub fn expected_criterion_scores(&self, criterion: Criterion) -> [f64; 2] {
        self.rating_mean(criterion, |rating| rating.score.expected())
    }

    /// Returns whether the preferred response changes with the presentation order. `None` if only
    /// one order was judged.
    pub fn is_flipped(&self) -> Option<bool> {
        match self.orders.as_slice() {
            [first, second] => Some(first.preference() != second.preference()),
            _ => None,
        }
    }

    fn rating_mean(&self, criterion: Criterion, value: impl Fn(&Rating) -> f64) -> [f64; 2] {
        self.mean(|order, r| {
            let ratings = order.branches.iter().flat_map(|b| &b.ratings);
            let mut found = ratings.filter(|(c, _)| *c == criterion);
            found.next().map_or(0.0, |(_, pair)| value(&pair[r]))
        })
    }

    fn mean(&self, value: impl Fn(&OrderVerdict, usize) -> f64) -> [f64; 2] {
        let n = self.orders.len().max(1) as f64;
        [0, 1].map(|r| self.orders.iter().map(|o| value(o, r)).sum::<f64>() / n)
    }
}

/// Compares the combined scores of two responses. Scores that are equal within 1e-9 are a tie.
pub fn compare_scores(scores: [f64; 2]) -> Ordering {
    if (scores[0] - scores[1]).abs() < 1e-9 {
        Ordering::Equal
    } else {
        scores[0].total_cmp(&scores[1])
    }
}

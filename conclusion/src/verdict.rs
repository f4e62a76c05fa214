//! The verdict on one pair: what each presentation order gave, and their combination.

use std::cmp::Ordering;

use acem3_experts::{Aspect, BranchEvaluation, Criterion, Rating};

/// What one presentation order gave. Every pair of values is in the order of the *pair*, whichever
/// response the judge saw first.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderVerdict {
    /// True when the second response was shown first.
    pub swapped: bool,
    /// The three branch evaluations, in the order of [`Aspect::ALL`].
    pub branches: Vec<BranchEvaluation>,
    /// The conclusion's analysis and final score of each response.
    pub conclusion: [Rating; 2],
}

impl OrderVerdict {
    /// Which response this order preferred, by its final scores.
    pub fn order(&self) -> Ordering {
        self.conclusion[0]
            .score
            .value
            .cmp(&self.conclusion[1].score.value)
    }
}

/// The judgement of one pair, symmetric by construction: both orders weigh the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// One entry (single order) or two (both orders).
    pub orders: Vec<OrderVerdict>,
}

impl Verdict {
    /// The combined final score of each response, 0 to 5: the mean over the orders.
    pub fn scores(&self) -> [f64; 2] {
        self.mean(|o, r| f64::from(o.conclusion[r].score.value))
    }

    /// The combined expected final score of each response, 0 to 5.
    pub fn expected(&self) -> [f64; 2] {
        self.mean(|o, r| o.conclusion[r].score.expected())
    }

    /// Which response is better by the combined final scores.
    pub fn order(&self) -> Ordering {
        compare(self.scores())
    }

    /// The combined mean score of an aspect, 0 to 5.
    pub fn aspect(&self, aspect: Aspect) -> [f64; 2] {
        let branch = |o: &OrderVerdict, r: usize| {
            o.branches
                .iter()
                .find(|b| b.aspect == aspect)
                .map_or(0.0, |b| b.means()[r])
        };
        self.mean(branch)
    }

    /// The combined score of a criterion, 0 to 5.
    pub fn criterion(&self, criterion: Criterion) -> [f64; 2] {
        self.rating_mean(criterion, |rating| f64::from(rating.score.value))
    }

    /// The combined expected score of a criterion, 0 to 5.
    pub fn criterion_expected(&self, criterion: Criterion) -> [f64; 2] {
        self.rating_mean(criterion, |rating| rating.score.expected())
    }

    /// Whether the two orders disagree about which response is better.
    /// `None` when only one order was judged.
    pub fn flip(&self) -> Option<bool> {
        match self.orders.as_slice() {
            [first, second] => Some(first.order() != second.order()),
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

/// The order of two combined scores; equal within rounding is a tie.
pub fn compare(scores: [f64; 2]) -> Ordering {
    if (scores[0] - scores[1]).abs() < 1e-9 {
        Ordering::Equal
    } else {
        scores[0].total_cmp(&scores[1])
    }
}

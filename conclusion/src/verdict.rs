//! Verdict on the responses of a case: the result of each presentation order, and their combination.

use std::cmp::Ordering;

use acem3_experts::prompt::Form;
use acem3_experts::{Aspect, BranchEvaluation, Criterion, Rating};

/// Difference of two neighbouring final scores in one presentation order.
const SCORE_STEP: f64 = 1.0;

/// Result of one presentation order. Values are in the order of the *record*, regardless of the order
/// in which the judge saw the responses.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderVerdict {
    /// True if the judge saw the second response of a pair first.
    pub swapped: bool,
    /// Index of the response that the judge saw first, if it saw a list; the others followed in their
    /// order, and the ones before it came last.
    pub first_shown: Option<usize>,
    /// The branch evaluations in the order of [`Aspect::ALL`]; none if the form asks only whether a
    /// response is correct.
    pub branches: Vec<BranchEvaluation>,
    /// Analysis and final score of each response.
    pub conclusion: Vec<Rating>,
}

impl OrderVerdict {
    /// Creates the result of a presentation order from evaluations in that order. `rotation`: index of
    /// the response that the judge saw first.
    pub fn from_presentation(
        form: Form,
        rotation: usize,
        mut branches: Vec<BranchEvaluation>,
        mut conclusion: Vec<Rating>,
    ) -> Self {
        let ratings = branches.iter_mut().flat_map(|b| &mut b.ratings).map(|(_, ratings)| ratings);
        for ratings in ratings.chain([&mut conclusion]) {
            let n = rotation.min(ratings.len());
            ratings.rotate_right(n);
        }
        let is_list = form == Form::List;
        Self {
            swapped: !is_list && rotation == 1,
            first_shown: is_list.then_some(rotation),
            branches,
            conclusion,
        }
    }

    /// Compares the most probable final scores of the first two responses: `Greater` if the judge prefers the
    /// first one.
    pub fn preference(&self) -> Ordering {
        let scores = self.conclusion.iter().map(|rating| f64::from(rating.score.value));
        compare_scores(scores.collect::<Vec<_>>())
    }
}

/// Combined result of one or more responses. Two presentation orders have the same weight, so the
/// result does not depend on which response the judge sees first.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// One or both presentation orders.
    pub orders: Vec<OrderVerdict>,
}

impl Verdict {
    /// Returns the final score of each response, 0 to 5: the mean over the presentation orders.
    pub fn scores(&self) -> Vec<f64> {
        self.mean(|o, r| Some(o.conclusion.get(r)?.mean_value()))
    }

    /// Returns the mean expected final score of each response, 0 to 5. If the form asks whether a
    /// response is correct, it is the probability that it is, 0 to 1.
    pub fn expected_scores(&self) -> Vec<f64> {
        self.mean(|o, r| Some(o.conclusion.get(r)?.score.expected()))
    }

    /// Compares the combined final scores of a pair: `Greater` if the judge prefers the first
    /// response. With one sample, the smallest difference is one point, divided by the number of presentation
    /// orders. Means over samples that differ by less than half of that are a tie.
    pub fn preference(&self) -> Ordering {
        compare_by_step(&self.scores(), SCORE_STEP / self.orders.len().max(1) as f64)
    }

    /// Returns the mean score of an aspect for each response, 0 to 5.
    pub fn aspect_scores(&self, aspect: Aspect) -> Vec<f64> {
        self.mean(|o, r| o.branches.iter().find(|b| b.aspect == aspect)?.means().get(r).copied())
    }

    /// Returns the mean score of a criterion for each response, 0 to 5.
    pub fn criterion_scores(&self, criterion: Criterion) -> Vec<f64> {
        self.rating_mean(criterion, Rating::mean_value)
    }

    /// Returns the mean expected score of a criterion for each response, 0 to 5.
    pub fn expected_criterion_scores(&self, criterion: Criterion) -> Vec<f64> {
        self.rating_mean(criterion, |rating| rating.score.expected())
    }

    /// Returns whether the preferred response of a pair changes with the presentation order. `None` if
    /// only one order was judged, or a list.
    pub fn is_flipped(&self) -> Option<bool> {
        match self.orders.as_slice() {
            [first, second] if first.first_shown.is_none() => {
                Some(first.preference() != second.preference())
            }
            _ => None,
        }
    }

    /// Returns the number of responses.
    pub fn responses(&self) -> usize {
        self.orders.first().map_or(0, |order| order.conclusion.len())
    }

    fn rating_mean(&self, criterion: Criterion, value: impl Fn(&Rating) -> f64) -> Vec<f64> {
        self.mean(|order, r| {
            let ratings = order.branches.iter().flat_map(|b| &b.ratings);
            let mut found = ratings.filter(|(c, _)| *c == criterion);
            found.next().and_then(|(_, ratings)| Some(value(ratings.get(r)?)))
        })
    }

    /// Returns the mean of a value over the presentation orders, for each response. A missing value
    /// counts as 0.
    fn mean(&self, value: impl Fn(&OrderVerdict, usize) -> Option<f64>) -> Vec<f64> {
        let n = self.orders.len().max(1) as f64;
        let sum = |r| self.orders.iter().filter_map(|o| value(o, r)).sum::<f64>();
        (0..self.responses()).map(|r| sum(r) / n).collect()
    }
}

/// Compares the first two scores; differences of less than half a step are a tie.
fn compare_by_step(scores: &[f64], step: f64) -> Ordering {
    match scores {
        [first, second, ..] if (first - second).abs() < step / 2.0 - 1e-9 => Ordering::Equal,
        scores => compare_scores(scores),
    }
}

/// Compares the combined scores of the first two responses. Scores that are equal within 1e-9, and
/// missing scores, are a tie.
pub fn compare_scores(scores: impl AsRef<[f64]>) -> Ordering {
    match scores.as_ref() {
        [first, second, ..] if (first - second).abs() >= 1e-9 => first.total_cmp(second),
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_over_samples_that_hardly_differ_are_a_tie() {
        // One order, and two.
        for (scores, step, expected) in [
            ([3.0, 3.4], 1.0, Ordering::Equal),
            ([3.0, 3.5], 1.0, Ordering::Less),
            ([4.0, 3.0], 1.0, Ordering::Greater),
            ([3.2, 3.0], 0.5, Ordering::Equal),
            ([3.5, 3.0], 0.5, Ordering::Greater),
            ([3.0, 3.0], 0.5, Ordering::Equal),
        ] {
            assert_eq!(compare_by_step(&scores, step), expected, "{scores:?}");
        }
    }
}

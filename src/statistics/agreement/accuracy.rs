//! Accuracy of a judge's orders: the contribution of each pair or triple.
//!
//! The mean of the contributions is the accuracy. An order is `Greater` if the first response is better and
//! `Equal` for a tie.

use std::cmp::Ordering;

/// Pairwise accuracy with ties, which is AutoMedEval's `accuracy_2-tuple` and the accuracy of ACE-M³:
/// the judge's order (`>`, `=` or `<`) must equal the label's.
pub fn with_ties(judge: Ordering, label: Ordering) -> f64 {
    hit(judge == label)
}

/// Pairwise accuracy without ties, as in MT-Bench: over the pairs that neither judge nor label calls a tie.
pub fn without_ties(judge: Ordering, label: Ordering) -> Option<f64> {
    (judge.is_ne() && label.is_ne()).then(|| hit(judge == label))
}

/// Whether the judge prefers the better response, over the pairs that have one. A tie of the judge counts one half.
pub fn preferred(judge: Ordering, label: Ordering) -> Option<f64> {
    label.is_ne().then(|| {
        if judge.is_eq() {
            0.5
        } else {
            hit(judge == label)
        }
    })
}

/// AutoMedEval's `accuracy_triple`: whether all three orders of three responses equal the label's.
pub fn triple(judge: [Ordering; 3], label: [Ordering; 3]) -> f64 {
    hit(judge == label)
}

fn hit(is_correct: bool) -> f64 {
    f64::from(u8::from(is_correct))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::*;

    #[test]
    fn each_definition_treats_ties_differently() {
        let pairs = [
            (Greater, Greater),
            (Equal, Greater),
            (Greater, Equal),
            (Equal, Equal),
            (Less, Greater),
        ];
        let of = |count: fn(Ordering, Ordering) -> Option<f64>| pairs.map(|(j, l)| count(j, l));
        let with = pairs.map(|(j, l)| with_ties(j, l) as u8);
        assert_eq!(with, [1, 0, 0, 1, 0]);
        assert_eq!(of(without_ties), [Some(1.0), None, None, None, Some(0.0)]);
        let half = [Some(1.0), Some(0.5), None, None, Some(0.0)];
        assert_eq!(of(preferred), half);
    }

    #[test]
    fn triple_needs_all_three_orders() {
        let label = [Greater, Equal, Less];
        assert!(triple(label, label) > 0.5);
        assert!(triple([Greater, Equal, Equal], label) < 0.5);
    }
}

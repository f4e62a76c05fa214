//! Whether a judge orders answers as people do: what each pair or triple counts.
//!
//! The mean of these values is the accuracy of that name. An order is that of the first answer to the
//! second: `Greater` where the first is better, `Equal` for a tie.

use std::cmp::Ordering;

/// Pairwise accuracy with ties, which is AutoMedEval's `accuracy_2-tuple` and the accuracy of ACE-M³:
/// `>`, `=` and `<` are three orders, and the judge's must be the label's.
pub fn with_ties(judge: Ordering, label: Ordering) -> f64 {
    hit(judge == label)
}

/// Pairwise accuracy without ties, as MT-Bench counts it: of the pairs that neither calls a tie.
pub fn without_ties(judge: Ordering, label: Ordering) -> Option<f64> {
    (judge.is_ne() && label.is_ne()).then(|| hit(judge == label))
}

/// Of the pairs with a better answer: whether the judge prefers it. Its tie is half a hit, what
/// tossing a coin would give.
pub fn preferred(judge: Ordering, label: Ordering) -> Option<f64> {
    label.is_ne().then(|| {
        if judge.is_eq() {
            0.5
        } else {
            hit(judge == label)
        }
    })
}

/// AutoMedEval's `accuracy_triple`: of three answers to one question, whether all three orders are
/// the label's.
pub fn triple(judge: [Ordering; 3], label: [Ordering; 3]) -> f64 {
    hit(judge == label)
}

fn hit(right: bool) -> f64 {
    f64::from(u8::from(right))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::*;

    #[test]
    fn ties_by_each_definition() {
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
    fn a_triple_is_right_as_a_whole() {
        let label = [Greater, Equal, Less];
        assert!(triple(label, label) > 0.5);
        assert!(triple([Greater, Equal, Equal], label) < 0.5);
    }
}

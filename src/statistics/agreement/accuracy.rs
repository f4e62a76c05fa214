//! Accuracy of a judge's orders. Each function returns the value of one pair or triple. The
//! accuracy is the mean of these values.
//!
//! An order is `Greater` if the first response is better and `Equal` for a tie.

use std::cmp::Ordering;

/// Returns 1 if the judge's order (`>`, `=` or `<`) equals the label's, else 0. The mean is the
/// pairwise accuracy with ties: AutoMedEval's `accuracy_2-tuple` and the accuracy of ACE-M³.
pub fn with_ties(judge: Ordering, label: Ordering) -> f64 {
    indicator(judge == label)
}

/// Returns 1 if the orders are equal, else 0; `None` if judge or label is a tie. The mean is the
/// pairwise accuracy without ties, as in MT-Bench.
pub fn without_ties(judge: Ordering, label: Ordering) -> Option<f64> {
    (judge.is_ne() && label.is_ne()).then(|| indicator(judge == label))
}

/// Returns 1 if the judge prefers the better response, ½ for a tie of the judge, else 0; `None` if
/// the label is a tie.
pub fn judge_ties_as_half(judge: Ordering, label: Ordering) -> Option<f64> {
    label.is_ne().then(|| if judge.is_eq() { 0.5 } else { indicator(judge == label) })
}

/// Returns 1 if all three orders of three responses equal the label's, else 0 (AutoMedEval's
/// `accuracy_triple`).
pub fn triple(judge: [Ordering; 3], label: [Ordering; 3]) -> f64 {
    indicator(judge == label)
}

fn indicator(is_correct: bool) -> f64 {
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
        let values = |definition: fn(Ordering, Ordering) -> Option<f64>| {
            pairs.map(|(judge, label)| definition(judge, label))
        };
        let tie_values = pairs.map(|(judge, label)| with_ties(judge, label) as u8);
        assert_eq!(tie_values, [1, 0, 0, 1, 0]);
        assert_eq!(values(without_ties), [Some(1.0), None, None, None, Some(0.0)]);
        let expected = [Some(1.0), Some(0.5), None, None, Some(0.0)];
        assert_eq!(values(judge_ties_as_half), expected);
    }

    #[test]
    fn triple_needs_all_three_orders() {
        let label = [Greater, Equal, Less];
        assert!(triple(label, label) > 0.5);
        assert!(triple([Greater, Equal, Equal], label) < 0.5);
    }
}

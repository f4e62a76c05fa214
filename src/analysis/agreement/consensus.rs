//! Consensus of several raters.

use std::cmp::Ordering;

/// Mean score, optionally without one rater; `None` if no score remains.
pub(super) fn mean(ratings: &[(u32, f64)], without: Option<u32>) -> Option<f64> {
    let kept = ratings.iter().filter(|(rater, _)| Some(*rater) != without);
    let (sum, n) = kept.fold((0.0, 0.0), |(sum, n), (_, value)| (sum + value, n + 1.0));
    (n > 0.0).then(|| sum / n)
}

/// Majority vote, optionally without one rater. Equally frequent votes make a tie.
pub(super) fn majority(votes: &[(u32, Ordering)], without: Option<u32>) -> Option<Ordering> {
    let count = |order| {
        let kept = votes.iter().filter(|(rater, _)| Some(*rater) != without);
        kept.filter(|(_, vote)| *vote == order).count()
    };
    let counted = [Ordering::Less, Ordering::Equal, Ordering::Greater].map(|o| (count(o), o));
    let largest = counted.iter().map(|(n, _)| *n).max().filter(|n| *n > 0)?;
    let mut leading = counted.iter().filter(|(n, _)| *n == largest);
    match (leading.next(), leading.next()) {
        (Some((_, order)), None) => Some(*order),
        _ => Some(Ordering::Equal),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::*;

    #[test]
    fn consensus_matches_hand_computation() {
        let votes = [(0, Greater), (1, Greater), (2, Less)];
        assert_eq!(majority(&votes, None), Some(Greater));
        assert_eq!(majority(&votes, Some(1)), Some(Equal));
        assert_eq!(majority(&[], None), None);
        assert_eq!(mean(&[(0, 1.0), (1, 4.0)], None), Some(2.5));
        assert_eq!(mean(&[(1, 4.0)], Some(1)), None);
    }
}

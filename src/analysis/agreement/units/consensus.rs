//! Consensus of several raters.

use std::cmp::Ordering;

/// Computes the mean score, optionally without one rater; `None` if no score remains.
pub(crate) fn mean_score(ratings: &[(u32, f64)], without: Option<u32>) -> Option<f64> {
    let ratings = ratings.iter().filter(|(rater, _)| Some(*rater) != without);
    let (sum, n) = ratings.fold((0.0, 0.0), |(sum, n), (_, value)| (sum + value, n + 1.0));
    (n > 0.0).then(|| sum / n)
}

/// Returns the majority vote, optionally without one rater. Equally frequent votes make a tie.
pub(crate) fn majority_vote(votes: &[(u32, Ordering)], without: Option<u32>) -> Option<Ordering> {
    let count = |order| {
        let votes = votes.iter().filter(|(rater, _)| Some(*rater) != without);
        votes.filter(|(_, vote)| *vote == order).count()
    };
    let counts = [Ordering::Less, Ordering::Equal, Ordering::Greater].map(|o| (count(o), o));
    let largest = counts.iter().map(|(n, _)| *n).max().filter(|n| *n > 0)?;
    let mut leading = counts.iter().filter(|(n, _)| *n == largest);
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
        assert_eq!(majority_vote(&votes, None), Some(Greater));
        assert_eq!(majority_vote(&votes, Some(1)), Some(Equal));
        assert_eq!(majority_vote(&[], None), None);
        assert_eq!(mean_score(&[(0, 1.0), (1, 4.0)], None), Some(2.5));
        assert_eq!(mean_score(&[(1, 4.0)], Some(1)), None);
    }
}

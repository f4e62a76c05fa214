//! Negatives: rejected evaluations that are derived from correct ones (ACE-M³ §3.4: scores;
//! `HDCEval` §3.3: rationales and references).

use rand::Rng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::text::response_writer::{FINDING_SEPARATOR, finding_range};
use crate::training::config::stage::negative::Negative;

/// Analyses and scores for each criterion of the first response, then of the second.
pub(crate) type EvaluationRatings = Vec<(String, u8)>;

/// Number of points by which a score changes.
const SCORE_CHANGE: std::ops::RangeInclusive<u8> = 1..=3;
/// Probability of a second change.
const SECOND_CHANGE_RATE: f64 = 0.3;
/// Maximum number of attempts to derive a negative from an evaluation.
const MAX_ATTEMPTS: usize = 16;

/// Derived negative.
pub(crate) struct DerivedNegative {
    /// Ratings of the negative.
    pub(crate) ratings: EvaluationRatings,
    /// The one or two applied changes.
    pub(crate) changes: Vec<Negative>,
}

/// Derives a negative with one change. Returns `None` if the change has no effect.
fn derive_negative(
    change: Negative,
    ratings: &EvaluationRatings,
    rng: &mut ChaCha8Rng,
) -> Option<EvaluationRatings> {
    let half = ratings.len() / 2;
    let mut derived = ratings.clone();
    let (first, second) = derived.split_at_mut(half);
    let pairs = first.iter_mut().zip(second);
    match change {
        Negative::ScoreSwap => {
            let differing = pairs.filter(|(a, b)| a.1 != b.1);
            for (a, b) in random_subset(differing.collect(), rng) {
                std::mem::swap(&mut a.1, &mut b.1);
            }
        }
        Negative::ScoreAddition => {
            // On one criterion, the score of one response rises and that of the other falls by the
            // same number of points. If the scale allows this for no criterion, only one of the two
            // scores changes.
            let max_points =
                |[up, down]: [usize; 2]| (5 - ratings[up].1.min(5)).min(ratings[down].1);
            let directions = || (0..half).flat_map(|i| [[i, i + half], [i + half, i]]);
            let balanced = directions().filter(|indices| max_points(*indices) > 0).choose(rng);
            let [up, down] = balanced.or_else(|| directions().choose(rng))?;
            let limit = if balanced.is_some() { max_points([up, down]) } else { 5 };
            let points = rng.random_range(SCORE_CHANGE).min(limit);
            derived[up].1 = (derived[up].1 + points).min(5);
            derived[down].1 = derived[down].1.saturating_sub(points);
        }
        Negative::RationaleExchange => {
            let differing = pairs.filter(|(a, b)| a.0 != b.0);
            for (a, b) in random_subset(differing.collect(), rng) {
                std::mem::swap(&mut a.0, &mut b.0);
            }
        }
        Negative::ReferenceRemoval => {
            for (analysis, _) in &mut derived {
                if let Some(shortened) = without_reference(analysis) {
                    *analysis = shortened;
                }
            }
        }
    }
    (derived != *ratings).then_some(derived)
}

/// Derives a negative with one or two of these changes. Returns `None` if no attempt gives a
/// different and well-formed evaluation.
pub(crate) fn derive_any_negative(
    changes: &[Negative],
    ratings: &EvaluationRatings,
    rng: &mut ChaCha8Rng,
) -> Option<DerivedNegative> {
    for _ in 0..MAX_ATTEMPTS {
        let first = *changes.choose(rng)?;
        let Some(mut derived) = derive_negative(first, ratings, rng) else {
            continue;
        };
        let mut applied = vec![first];
        if rng.random_bool(SECOND_CHANGE_RATE)
            && let Some(second) = changes.iter().filter(|c| **c != first).choose(rng)
            && let Some(both) = derive_negative(*second, &derived, rng)
        {
            derived = both;
            applied.push(*second);
        }
        // Two changes may cancel each other.
        if derived != *ratings && is_well_formed(&derived) {
            return Some(DerivedNegative { ratings: derived, changes: applied });
        }
    }
    None
}

/// Returns true if a member could write this evaluation: every analysis is one non-blank line and
/// every score is from 0 to 5.
fn is_well_formed(ratings: &EvaluationRatings) -> bool {
    let is_line = |text: &str| !text.trim().is_empty() && !text.contains(['\n', '\r']);
    ratings.len().is_multiple_of(2)
        && ratings.iter().all(|(text, score)| is_line(text) && *score <= 5)
}

/// Returns a random subset with at least one item, unless there are no items.
fn random_subset<T>(mut items: Vec<T>, rng: &mut ChaCha8Rng) -> Vec<T> {
    let minimum = items.len().min(1);
    let n = rng.random_range(minimum..=items.len());
    while items.len() > n {
        items.swap_remove(rng.random_range(0..items.len()));
    }
    items
}

/// Returns a factual analysis without the part that describes the image.
fn without_reference(analysis: &str) -> Option<String> {
    let finding = finding_range(analysis)?;
    let claim = analysis.get(..finding.start - FINDING_SEPARATOR.len())?;
    Some(format!("{claim}{}", analysis.get(finding.end..)?))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn ratings() -> EvaluationRatings {
        let finding = "Claims left; the image shows right: they differ.";
        [(finding, 1), ("Safe.", 5), ("Claims right.", 5), ("Safe.", 5)]
            .map(|(text, score)| (text.to_owned(), score))
            .into()
    }

    fn derive_with_seeds(negative: Negative, seeds: u64) -> Vec<EvaluationRatings> {
        let sample =
            |seed| derive_negative(negative, &ratings(), &mut ChaCha8Rng::seed_from_u64(seed));
        (0..seeds).filter_map(sample).collect()
    }

    #[test]
    fn score_swap_changes_differing_scores() {
        for worse in derive_with_seeds(Negative::ScoreSwap, 20) {
            let scores: Vec<u8> = worse.iter().map(|(_, score)| *score).collect();
            assert_eq!(scores, [5, 5, 1, 5]);
        }
    }

    #[test]
    fn score_addition_moves_points() {
        let all = derive_with_seeds(Negative::ScoreAddition, 60);
        assert_eq!(all.len(), 60);
        for worse in all {
            let original = ratings();
            let change = |i: usize| i16::from(worse[i].1) - i16::from(original[i].1);
            let changes = [0, 1, 2, 3].map(change);
            let changed = changes.iter().filter(|change| **change != 0).count();
            assert!(changed == 2 && changes[0] + changes[2] == 0, "{worse:?}");
            assert_eq!(changes[1] + changes[3], 0, "{worse:?}");
            assert!(is_well_formed(&worse));
        }
        // A perfect score can only fall, so only one score changes.
        let best: EvaluationRatings = ratings().into_iter().map(|(text, _)| (text, 5)).collect();
        let worse =
            derive_negative(Negative::ScoreAddition, &best, &mut ChaCha8Rng::seed_from_u64(1));
        let lowered = worse.unwrap().iter().filter(|(_, score)| *score < 5).count();
        assert_eq!(lowered, 1);
    }

    #[test]
    fn rationale_exchange_and_reference_removal_change_analyses() {
        for worse in derive_with_seeds(Negative::RationaleExchange, 20) {
            assert_eq!((worse[0].0.as_str(), worse[0].1), ("Claims right.", 1));
        }
        let [worse] = &derive_with_seeds(Negative::ReferenceRemoval, 1)[..] else {
            panic!("expected one negative");
        };
        assert_eq!(worse[0].0, "Claims left: they differ.");
        assert_eq!(worse[1..], ratings()[1..]);
    }

    #[test]
    fn negatives_are_well_formed_and_different() {
        let mut applied = std::collections::HashSet::new();
        for seed in 0..300 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let negative = derive_any_negative(&Negative::ALL, &ratings(), &mut rng).unwrap();
            assert!(negative.ratings != ratings() && is_well_formed(&negative.ratings));
            applied.extend(negative.changes);
        }
        assert_eq!(applied.len(), 4);
        // Equal scores cannot be swapped.
        let equal: EvaluationRatings = vec![("Safe.".to_owned(), 5); 2];
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        assert!(derive_any_negative(&[Negative::ScoreSwap], &equal, &mut rng).is_none());
        assert!(derive_any_negative(&[Negative::ScoreAddition], &equal, &mut rng).is_some());
    }
}

//! Worse evaluations, made from a right one (ACE-M³ §3.4: scores; `HDCEval` §3.3: rationales and
//! references).

use acem3_experts::Aspect;
use rand::Rng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::data::phantoms::response_writer::{SHOWN, found};

/// An analysis and a score for each criterion of the first response, then of the second.
pub(crate) type EvaluationRatings = Vec<(String, u8)>;

/// What is done to an evaluation to make it wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Negative {
    /// Responses exchange their scores on some criteria.
    ScoreSwap,
    /// On a criterion one response gains what the other loses.
    ScoreAddition,
    /// Responses exchange their analyses on some criteria.
    RationaleExchange,
    /// Analyses no longer say what the image shows.
    ReferenceRemoval,
}

/// How far a score is moved.
const MOVED: std::ops::RangeInclusive<u8> = 1..=3;
/// How often a second thing is done.
const MIXED: f64 = 0.3;
/// Draws before an evaluation counts as one that none of the ways makes wrong.
const DRAWS: usize = 16;

impl Negative {
    /// All ways.
    pub const ALL: [Self; 4] = [
        Self::ScoreSwap,
        Self::ScoreAddition,
        Self::RationaleExchange,
        Self::ReferenceRemoval,
    ];

    /// Its name in words.
    pub fn name(self) -> String {
        match self {
            Self::ScoreSwap => "score swap",
            Self::ScoreAddition => "score addition",
            Self::RationaleExchange => "rationale exchange",
            Self::ReferenceRemoval => "reference removal",
        }
        .to_owned()
    }

    /// Whether it can make an evaluation of this member worse: what the image shows stands in those of medical
    /// knowledge alone.
    pub(crate) fn concerns(self, member: &str) -> bool {
        self != Self::ReferenceRemoval || member == Aspect::MedicalKnowledge.key()
    }

    /// A worse evaluation, or none where this way changes nothing.
    fn of(self, ratings: &EvaluationRatings, rng: &mut ChaCha8Rng) -> Option<EvaluationRatings> {
        let half = ratings.len() / 2;
        let mut worse = ratings.clone();
        let (first, second) = worse.split_at_mut(half);
        let both = first.iter_mut().zip(second);
        match self {
            Self::ScoreSwap => {
                let differing = both.filter(|(a, b)| a.1 != b.1);
                for (a, b) in some(differing.collect(), rng) {
                    std::mem::swap(&mut a.1, &mut b.1);
                }
            }
            Self::ScoreAddition => {
                // What one gains the other loses where there is room for both; where all are at an end of the scale, one of
                // two moves alone.
                let room = |[up, down]: [usize; 2]| (5 - ratings[up].1.min(5)).min(ratings[down].1);
                let moves = || (0..half).flat_map(|i| [[i, i + half], [i + half, i]]);
                let roomy = moves().filter(|places| room(*places) > 0).choose(rng);
                let [up, down] = roomy.or_else(|| moves().choose(rng))?;
                let most = if roomy.is_some() { room([up, down]) } else { 5 };
                let by = rng.random_range(MOVED).min(most);
                worse[up].1 = (worse[up].1 + by).min(5);
                worse[down].1 = worse[down].1.saturating_sub(by);
            }
            Self::RationaleExchange => {
                let differing = both.filter(|(a, b)| a.0 != b.0);
                for (a, b) in some(differing.collect(), rng) {
                    std::mem::swap(&mut a.0, &mut b.0);
                }
            }
            Self::ReferenceRemoval => {
                for (analysis, _) in &mut worse {
                    if let Some(without) = without_reference(analysis) {
                        *analysis = without;
                    }
                }
            }
        }
        (worse != *ratings).then_some(worse)
    }
}

/// A worse evaluation by one of these ways, at times by two, and which they were. None where no way
/// makes one that is different and well formed.
pub(crate) fn negative(
    ways: &[Negative],
    ratings: &EvaluationRatings,
    rng: &mut ChaCha8Rng,
) -> Option<(EvaluationRatings, Vec<Negative>)> {
    for _ in 0..DRAWS {
        let way = *ways.choose(rng)?;
        let Some(mut worse) = way.of(ratings, rng) else {
            continue;
        };
        let mut done = vec![way];
        if rng.random_bool(MIXED)
            && let Some(other) = ways.iter().filter(|w| **w != way).choose(rng)
            && let Some(mixed) = other.of(&worse, rng)
        {
            worse = mixed;
            done.push(*other);
        }
        // Two changes may undo each other.
        if worse != *ratings && is_well_formed(&worse) {
            return Some((worse, done));
        }
    }
    None
}

/// Whether an evaluation could have been written by an expert: every analysis is a line with words,
/// every score one of 0 to 5.
fn is_well_formed(ratings: &EvaluationRatings) -> bool {
    let line = |text: &str| !text.trim().is_empty() && !text.contains(['\n', '\r']);
    ratings.len().is_multiple_of(2)
        && ratings
            .iter()
            .all(|(text, score)| line(text) && *score <= 5)
}

/// At least one of some things.
fn some<T>(mut all: Vec<T>, rng: &mut ChaCha8Rng) -> Vec<T> {
    let least = all.len().min(1);
    let kept = rng.random_range(least..=all.len());
    while all.len() > kept {
        all.swap_remove(rng.random_range(0..all.len()));
    }
    all
}

/// The analysis of a finding without the finding.
fn without_reference(analysis: &str) -> Option<String> {
    let found = found(analysis)?;
    let claim = analysis.get(..found.start - SHOWN.len())?;
    Some(format!("{claim}{}", analysis.get(found.end..)?))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn ratings() -> EvaluationRatings {
        let finding = "Claims left; the image shows right: they differ.";
        [
            (finding, 1),
            ("Safe.", 5),
            ("Claims right.", 5),
            ("Safe.", 5),
        ]
        .map(|(text, score)| (text.to_owned(), score))
        .into()
    }

    fn made(way: Negative, draws: u64) -> Vec<EvaluationRatings> {
        let draw = |seed| way.of(&ratings(), &mut ChaCha8Rng::seed_from_u64(seed));
        (0..draws).filter_map(draw).collect()
    }

    #[test]
    fn scores_are_swapped_where_they_differ() {
        for worse in made(Negative::ScoreSwap, 20) {
            let scores: Vec<u8> = worse.iter().map(|r| r.1).collect();
            assert_eq!(scores, [5, 5, 1, 5]);
        }
    }

    #[test]
    fn what_one_gains_the_other_loses() {
        let all = made(Negative::ScoreAddition, 60);
        assert_eq!(all.len(), 60);
        for worse in all {
            let old = ratings();
            let change = |i: usize| i16::from(worse[i].1) - i16::from(old[i].1);
            let changes = [0, 1, 2, 3].map(change);
            let moved = changes.iter().filter(|change| **change != 0).count();
            assert!(moved == 2 && changes[0] + changes[2] == 0, "{worse:?}");
            assert_eq!(changes[1] + changes[3], 0, "{worse:?}");
            assert!(is_well_formed(&worse));
        }
        // What is best in all can lose alone.
        let best: EvaluationRatings = ratings().into_iter().map(|(text, _)| (text, 5)).collect();
        let worse = Negative::ScoreAddition.of(&best, &mut ChaCha8Rng::seed_from_u64(1));
        let fallen = worse
            .unwrap()
            .iter()
            .filter(|(_, score)| *score < 5)
            .count();
        assert_eq!(fallen, 1);
    }

    #[test]
    fn analyses_change_places_and_references_vanish() {
        for worse in made(Negative::RationaleExchange, 20) {
            assert_eq!((worse[0].0.as_str(), worse[0].1), ("Claims right.", 1));
        }
        let [worse] = &made(Negative::ReferenceRemoval, 1)[..] else {
            panic!("one");
        };
        assert_eq!(worse[0].0, "Claims left: they differ.");
        assert_eq!(worse[1..], ratings()[1..]);
    }

    #[test]
    fn every_negative_is_well_formed_and_different() {
        let mut kinds = std::collections::HashSet::new();
        for seed in 0..300 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (worse, done) = negative(&Negative::ALL, &ratings(), &mut rng).unwrap();
            assert!(worse != ratings() && is_well_formed(&worse));
            kinds.extend(done.iter().copied());
        }
        assert_eq!(kinds.len(), 4);
        // Two equal perfect evaluations have nothing to swap.
        let even: EvaluationRatings = vec![("Safe.".to_owned(), 5); 2];
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        assert_eq!(negative(&[Negative::ScoreSwap], &even, &mut rng), None);
        assert!(negative(&[Negative::ScoreAddition], &even, &mut rng).is_some());
    }
}

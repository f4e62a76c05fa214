//! Derivation of negatives.

use rand::Rng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand_chacha::ChaCha8Rng;

use super::evaluation_content::{EvaluationContent, EvaluationRatings};
use super::not_applicable::NotApplicable;
use super::reference_statements::without_reference;
use crate::training::config::stage::negative::Negative;

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

/// Result of a change.
type Derived = Result<EvaluationRatings, NotApplicable>;

/// Two ratings of the same criterion, by index.
type RatingPair = [usize; 2];

/// A change of an evaluation.
struct Change<'a> {
    evaluation: &'a EvaluationContent<'a>,
    /// Ratings to change. They may have been changed before.
    ratings: &'a EvaluationRatings,
    /// Index of the only criterion to change; `None` for a random choice.
    criterion: Option<usize>,
}

impl Change<'_> {
    /// Derives a negative with one change. The change may have no effect.
    fn derive(&self, change: Negative, rng: &mut ChaCha8Rng) -> Derived {
        match change {
            Negative::ScoreSwap => {
                let swapped = self.differing_pairs(|a, b| a.1 != b.1, rng)?;
                let mut derived = self.ratings.clone();
                for [a, b] in swapped.ok_or(NotApplicable::EqualScores)? {
                    (derived[a].1, derived[b].1) = (derived[b].1, derived[a].1);
                }
                Ok(derived)
            }
            Negative::RationaleExchange => {
                let exchanged = self.differing_pairs(|a, b| a.0 != b.0, rng)?;
                let mut derived = self.ratings.clone();
                for [a, b] in exchanged.ok_or(NotApplicable::EqualAnalyses)? {
                    let (text_a, text_b) = (derived[a].0.clone(), derived[b].0.clone());
                    (derived[a].0, derived[b].0) = (text_b, text_a);
                }
                Ok(derived)
            }
            Negative::ScoreAddition => Ok(self.add_points(rng)),
            Negative::ReferenceRemoval => self.remove_reference(),
        }
    }

    /// Returns the criteria that may change.
    fn criteria(&self) -> std::ops::Range<usize> {
        match self.criterion {
            Some(criterion) => criterion..criterion + 1,
            None => 0..self.evaluation.criteria(),
        }
    }

    /// Returns the pairs of responses of a criterion.
    fn pairs(&self, criterion: usize) -> Vec<RatingPair> {
        let (responses, criteria) = (self.evaluation.responses, self.evaluation.criteria());
        let index = move |response: usize| response * criteria + criterion;
        let pairs =
            (0..responses).flat_map(|a| (a + 1..responses).map(move |b| [index(a), index(b)]));
        pairs.collect()
    }

    /// Returns a pair of ratings that differ for some criteria; `None` if none differ.
    fn differing_pairs(
        &self,
        differ: impl Fn(&(String, u8), &(String, u8)) -> bool,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<RatingPair>>, NotApplicable> {
        if self.evaluation.responses < 2 {
            return Err(NotApplicable::OneResponse);
        }
        let differing = self.criteria().filter_map(|criterion| {
            let mut pairs = self.pairs(criterion);
            pairs.retain(|[a, b]| differ(&self.ratings[*a], &self.ratings[*b]));
            (!pairs.is_empty()).then_some(pairs)
        });
        let chosen = random_subset(differing.collect::<Vec<_>>(), rng);
        let chosen: Vec<RatingPair> = chosen
            .into_iter()
            .filter_map(|pairs| match pairs.as_slice() {
                [only] => Some(*only),
                pairs => pairs.choose(rng).copied(),
            })
            .collect();
        Ok((!chosen.is_empty()).then_some(chosen))
    }

    /// Raises the score of one response on one criterion and lowers that of another by the same
    /// number of points. If the range allows this for no criterion, or there is one response, only
    /// one score changes. An answer yes becomes no.
    fn add_points(&self, rng: &mut ChaCha8Rng) -> EvaluationRatings {
        let mut derived = self.ratings.clone();
        let [low, high] = self.evaluation.range();
        let room = |i: usize| {
            let score = self.ratings[i].1.clamp(low, high);
            [high - score, score - low]
        };
        if self.evaluation.responses < 2 {
            let steps = self.criteria().flat_map(|i| [(i, 0), (i, 1)]);
            let Some((i, direction)) = steps.filter(|(i, d)| room(*i)[*d] > 0).choose(rng) else {
                return derived;
            };
            let points = rng.random_range(SCORE_CHANGE).min(room(i)[direction]);
            derived[i].1 = match direction {
                0 => derived[i].1 + points,
                _ => derived[i].1 - points,
            };
            return derived;
        }
        let max_points = |[up, down]: RatingPair| room(up)[0].min(room(down)[1]);
        let pairs = self.criteria().flat_map(|criterion| self.pairs(criterion));
        let directions: Vec<RatingPair> = pairs.flat_map(|[a, b]| [[a, b], [b, a]]).collect();
        let balanced = directions.iter().filter(|pair| max_points(**pair) > 0).choose(rng);
        let Some(&[up, down]) = balanced.or_else(|| directions.iter().choose(rng)) else {
            return derived;
        };
        let limit = if balanced.is_some() { max_points([up, down]) } else { high - low };
        let points = rng.random_range(SCORE_CHANGE).min(limit);
        derived[up].1 = (derived[up].1 + points).min(high);
        derived[down].1 = derived[down].1.saturating_sub(points).max(low);
        derived
    }

    /// Removes the statements of the reference from all analyses.
    fn remove_reference(&self) -> Derived {
        let reference = self.evaluation.sections.reference.as_deref();
        let mut derived = self.ratings.clone();
        for (i, (analysis, _)) in derived.iter_mut().enumerate() {
            let response = self.evaluation.response_of(i);
            if let Some(shortened) = without_reference(analysis, reference, response) {
                *analysis = shortened;
            }
        }
        if derived == *self.ratings {
            return Err(NotApplicable::NoReferenceStatement);
        }
        Ok(derived)
    }
}

/// Derives a negative with one change of the original evaluation. Returns the reason if the change
/// gives none.
fn derive_one(
    change: Negative,
    evaluation: &EvaluationContent,
    criterion: Option<usize>,
    rng: &mut ChaCha8Rng,
) -> Derived {
    let ratings = evaluation.ratings;
    let derived = Change { evaluation, ratings, criterion }.derive(change, rng)?;
    if !evaluation.is_well_formed(&derived) {
        return Err(NotApplicable::Malformed);
    }
    Ok(derived)
}

/// Derives a negative with one or two of these changes. Returns `None` if no attempt gives a
/// different and well-formed evaluation.
pub(crate) fn derive_any_negative(
    changes: &[Negative],
    evaluation: &EvaluationContent,
    rng: &mut ChaCha8Rng,
) -> Option<DerivedNegative> {
    let derive = |change, ratings: &EvaluationRatings, rng: &mut ChaCha8Rng| {
        let derived = Change { evaluation, ratings, criterion: None }.derive(change, rng).ok()?;
        (derived != *ratings).then_some(derived)
    };
    for _ in 0..MAX_ATTEMPTS {
        let first = *changes.choose(rng)?;
        let Some(mut derived) = derive(first, evaluation.ratings, rng) else {
            continue;
        };
        let mut applied = vec![first];
        if rng.random_bool(SECOND_CHANGE_RATE)
            && let Some(second) = changes.iter().filter(|c| **c != first).choose(rng)
            && let Some(both) = derive(*second, &derived, rng)
        {
            derived = both;
            applied.push(*second);
        }
        // Two changes may cancel each other.
        if derived != *evaluation.ratings && evaluation.is_well_formed(&derived) {
            return Some(DerivedNegative { ratings: derived, changes: applied });
        }
    }
    None
}

/// Derives all negatives with one of these changes: the removal of the reference once, the others
/// once for each criterion. Equal negatives are left out.
pub(crate) fn derive_every_negative(
    changes: &[Negative],
    evaluation: &EvaluationContent,
    rng: &mut ChaCha8Rng,
) -> Vec<DerivedNegative> {
    let mut negatives: Vec<DerivedNegative> = Vec::new();
    for change in changes {
        let criteria: Vec<Option<usize>> = match change {
            Negative::ReferenceRemoval => vec![None],
            _ => (0..evaluation.criteria()).map(Some).collect(),
        };
        for criterion in criteria {
            let Ok(ratings) = derive_one(*change, evaluation, criterion, rng) else {
                continue;
            };
            let is_known = negatives.iter().any(|other| other.ratings == ratings);
            if !is_known && ratings != *evaluation.ratings {
                negatives.push(DerivedNegative { ratings, changes: vec![*change] });
            }
        }
    }
    negatives
}

/// Returns the reason why a change gives no negative of an evaluation; `None` if it gives one.
pub(crate) fn find_obstacle(
    change: Negative,
    evaluation: &EvaluationContent,
    rng: &mut ChaCha8Rng,
) -> Option<NotApplicable> {
    derive_one(change, evaluation, None, rng).err()
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

#[cfg(test)]
mod tests {
    use acem3_experts::prompt::ScoreWords;
    use rand::SeedableRng;

    use super::super::prompt_sections::PromptSections;
    use super::*;

    fn ratings() -> EvaluationRatings {
        let finding = "The image shows right; the response claims left: they differ.";
        [(finding, 1), ("Safe.", 5), ("Claims right.", 5), ("Safe.", 5)]
            .map(|(text, score)| (text.to_owned(), score))
            .into()
    }

    fn derive_with_seeds(negative: Negative, seeds: u64) -> Vec<EvaluationRatings> {
        let ratings = ratings();
        let evaluation = EvaluationContent::of_pair(&ratings);
        let sample = |seed| {
            derive_one(negative, &evaluation, None, &mut ChaCha8Rng::seed_from_u64(seed)).ok()
        };
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
        }
        // A perfect score can only fall, so only one score changes.
        let best: EvaluationRatings = ratings().into_iter().map(|(text, _)| (text, 5)).collect();
        let evaluation = EvaluationContent::of_pair(&best);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let worse = derive_one(Negative::ScoreAddition, &evaluation, None, &mut rng);
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
        assert_eq!(worse[0].0, "The response claims left: they differ.");
        assert_eq!(worse[1..], ratings()[1..]);
    }

    #[test]
    fn negatives_are_well_formed_and_different() {
        let mut applied = std::collections::HashSet::new();
        let ratings = ratings();
        let evaluation = EvaluationContent::of_pair(&ratings);
        for seed in 0..300 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let negative = derive_any_negative(&Negative::ALL, &evaluation, &mut rng).unwrap();
            assert!(negative.ratings != ratings && evaluation.is_well_formed(&negative.ratings));
            applied.extend(negative.changes);
        }
        assert_eq!(applied.len(), 4);
        // Equal scores cannot be swapped.
        let equal: EvaluationRatings = vec![("Safe.".to_owned(), 5); 2];
        let equal = EvaluationContent::of_pair(&equal);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        assert!(derive_any_negative(&[Negative::ScoreSwap], &equal, &mut rng).is_none());
        assert!(derive_any_negative(&[Negative::ScoreAddition], &equal, &mut rng).is_some());
        let obstacle = |change, rng: &mut ChaCha8Rng| find_obstacle(change, &equal, rng);
        assert_eq!(obstacle(Negative::ScoreSwap, &mut rng), Some(NotApplicable::EqualScores));
        assert_eq!(
            obstacle(Negative::RationaleExchange, &mut rng),
            Some(NotApplicable::EqualAnalyses)
        );
        assert_eq!(obstacle(Negative::ScoreAddition, &mut rng), None);
    }

    /// A list of three responses with two criteria each, a response alone, and an answer yes.
    #[test]
    fn all_forms_have_negatives() {
        let list: EvaluationRatings =
            [("A.", 0), ("B.", 5), ("C.", 5), ("D.", 5), ("E.", 0), ("F.", 0)]
                .map(|(text, score)| (text.to_owned(), score))
                .into();
        let words = ScoreWords::DEFAULT;
        let sections = PromptSections::default();
        let evaluation = EvaluationContent { ratings: &list, responses: 3, words, sections };
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let every = derive_every_negative(&Negative::ALL, &evaluation, &mut rng);
        let count = |change| every.iter().filter(|n| n.changes == [change]).count();
        assert_eq!(
            Negative::ALL.map(count),
            [2, 2, 2, 0],
            "one for each criterion, and no reference"
        );
        for negative in &every {
            let changed: Vec<usize> =
                (0..6).filter(|i| negative.ratings[*i] != list[*i]).map(|i| i % 2).collect();
            assert!(changed.iter().all(|criterion| *criterion == changed[0]), "{changed:?}");
            assert!(evaluation.is_well_formed(&negative.ratings));
        }
        let single: EvaluationRatings = vec![("The reference is left. Good.".to_owned(), 3)];
        let alone = EvaluationContent {
            ratings: &single,
            responses: 1,
            words: ScoreWords::Points([1, 3]),
            sections: PromptSections::default(),
        };
        let every = derive_every_negative(&Negative::ALL, &alone, &mut rng);
        assert_eq!(every.len(), 2);
        assert!(every[0].ratings[0].1 < 3 && every[1].ratings[0].0 == "Good.");
        let obstacle = find_obstacle(Negative::ScoreSwap, &alone, &mut rng);
        assert_eq!(obstacle, Some(NotApplicable::OneResponse));
        let yes: EvaluationRatings = vec![("Equal.".to_owned(), 1)];
        let correct =
            EvaluationContent { ratings: &yes, words: ScoreWords::NoYes, ..alone.clone() };
        let every = derive_every_negative(&Negative::ALL, &correct, &mut rng);
        assert_eq!(every[0].ratings, [("Equal.".to_owned(), 0)]);
    }
}

//! Which criteria decided: those in which the preferred response leads most.
//!
//! The conclusion model scores the responses itself, so no criterion decides by a rule. The lead
//! says what the verdicts go together with.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::verdicts::{PairVerdict, TargetScoreMap};
use crate::data::labels::ScoreTarget;

/// Smallest difference that counts as one; scores have four decimals.
const EQUAL: f64 = 1e-6;

/// The criteria that decided the pairs of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DecidingCriteria {
    /// Number of pairs with a preferred response by the final scores.
    pub decided: usize,
    /// Number of these pairs in which the preferred response leads in no criterion.
    pub without_lead: usize,
    /// Number of ties by the final scores.
    pub ties: usize,
    /// All criteria, the one that decided most pairs first.
    pub criteria: Vec<DecidingCriterion>,
}

/// How often a criterion decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecidingCriterion {
    /// The criterion.
    pub criterion: ScoreTarget,
    /// Number of pairs in which the preferred response leads most in this criterion. A pair with
    /// several such criteria counts for each in equal parts.
    pub pairs: f64,
    /// Number of pairs in which no other criterion has as large a lead.
    pub alone: usize,
    /// Mean lead of the preferred response over all decided pairs, in score points.
    pub mean_lead: f64,
}

impl DecidingCriteria {
    /// Counts the deciding criteria of pairs.
    pub(crate) fn new(pairs: &[PairVerdict]) -> Self {
        let mut counted = Self::default();
        let mut criteria: BTreeMap<ScoreTarget, DecidingCriterion> = BTreeMap::new();
        for scores in pairs.iter().filter_map(|pair| pair.scores.as_ref()) {
            let Some(leads) = leads_of_preferred(scores) else {
                counted.ties += 1;
                continue;
            };
            counted.decided += 1;
            let largest = leads.iter().map(|(_, lead)| *lead).fold(0.0, f64::max);
            let is_largest = |lead: f64| lead > EQUAL && lead > largest - EQUAL;
            let count = leads.iter().filter(|(_, lead)| is_largest(*lead)).count();
            counted.without_lead += usize::from(count == 0);
            for (criterion, lead) in leads {
                let entry = criteria.entry(criterion).or_insert(DecidingCriterion {
                    criterion,
                    pairs: 0.0,
                    alone: 0,
                    mean_lead: 0.0,
                });
                entry.mean_lead += lead;
                if is_largest(lead) {
                    entry.pairs += 1.0 / count as f64;
                    entry.alone += usize::from(count == 1);
                }
            }
        }
        counted.criteria = criteria.into_values().collect();
        for criterion in &mut counted.criteria {
            criterion.mean_lead /= counted.decided as f64;
        }
        // The sort is stable: equal criteria stay in the order of the rubric.
        counted
            .criteria
            .sort_by(|a, b| b.pairs.total_cmp(&a.pairs).then(b.mean_lead.total_cmp(&a.mean_lead)));
        counted
    }
}

/// Returns the lead of the preferred response in each criterion; `None` if the final scores tie.
fn leads_of_preferred(scores: &TargetScoreMap) -> Option<Vec<(ScoreTarget, f64)>> {
    let [first, second] = *scores.get(&ScoreTarget::Final)?;
    if (first - second).abs() < EQUAL {
        return None;
    }
    let sign = (first - second).signum();
    let criteria = scores.iter().filter(|(target, _)| matches!(target, ScoreTarget::Criterion(_)));
    Some(criteria.map(|(target, [a, b])| (*target, sign * (a - b))).collect())
}

#[cfg(test)]
mod tests {
    use acem3_experts::Criterion;

    use super::*;

    fn pair(final_scores: [f64; 2], criteria: [[f64; 2]; 3]) -> PairVerdict {
        let names = [
            Criterion::CLARITY_OF_RESPONSE,
            Criterion::FACTUAL_ACCURACY,
            Criterion::TONE_AND_EMPATHY,
        ];
        let criteria = names.into_iter().map(ScoreTarget::Criterion).zip(criteria);
        PairVerdict {
            case: String::new(),
            pair: Default::default(),
            has_image: true,
            cluster: String::new(),
            scores: Some(criteria.chain([(ScoreTarget::Final, final_scores)]).collect()),
            orders: Vec::new(),
            words: [0; 2],
            has_identical_responses: false,
            meta: serde_json::Map::new(),
            line: 1,
            key: None,
        }
    }

    #[test]
    fn largest_lead_of_preferred_response_decides() {
        let pairs = [
            pair([4.0, 1.0], [[5.0, 4.0], [5.0, 1.0], [4.0, 4.0]]),
            pair([1.0, 2.0], [[3.0, 5.0], [1.0, 3.0], [5.0, 0.0]]),
            pair([3.0, 2.0], [[1.0, 5.0], [3.0, 3.0], [2.0, 3.0]]),
            pair([3.0, 3.0], [[5.0, 1.0], [3.0, 3.0], [2.0, 3.0]]),
        ];
        let counted = DecidingCriteria::new(&pairs);
        assert_eq!((counted.decided, counted.without_lead, counted.ties), (3, 1, 1));
        let [first, second, third] = counted.criteria.as_slice() else {
            panic!("{counted:?}");
        };
        assert_eq!(first.criterion, ScoreTarget::Criterion(Criterion::FACTUAL_ACCURACY));
        assert_eq!((first.pairs, first.alone, first.mean_lead), (1.5, 1, 2.0));
        assert_eq!(second.criterion, ScoreTarget::Criterion(Criterion::CLARITY_OF_RESPONSE));
        assert_eq!((second.pairs, second.alone), (0.5, 0));
        assert!((second.mean_lead + 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((third.pairs, third.mean_lead), (0.0, -2.0));
        assert_eq!(DecidingCriteria::new(&[]), DecidingCriteria::default());
    }
}

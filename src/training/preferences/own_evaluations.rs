//! Evaluations that a panel itself wrote about training cases, and which of them are wrong.

use std::collections::BTreeMap;

use acem3_conclusion::Verdict;
use acem3_experts::Aspect;
use serde::{Deserialize, Serialize};

use super::negatives::EvaluationRatings;
use crate::data::phantoms::text::response_writer::finding_range;

/// Evaluations of the experts on training cases, by the index of the case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnEvaluations {
    cases: BTreeMap<u64, OwnCase>,
}

/// Evaluations of a case by every expert, in both presentation orders. The ratings are in the order of
/// the case: those of its first response come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OwnCase {
    /// By member, then by order: the first response shown first, and shown second.
    members: Vec<[Option<EvaluationRatings>; 2]>,
}

impl OwnEvaluations {
    /// Adds the evaluations of a verdict.
    pub(crate) fn add(&mut self, index: u64, verdict: &Verdict) {
        let ratings = |aspect: Aspect, swapped: bool| {
            let order = verdict.orders.iter().find(|order| order.swapped == swapped)?;
            let branch = order.branches.iter().find(|branch| branch.aspect == aspect)?;
            Some(branch.texts_in_order(2))
        };
        let members =
            Aspect::ALL.map(|aspect| [false, true].map(|swapped| ratings(aspect, swapped)));
        self.cases.insert(index, OwnCase { members: members.to_vec() });
    }

    /// Returns the rejected evaluation of a member for each presentation order, in the order of the
    /// case. An order with a correct evaluation gets the wrong one of the other order, so that the same
    /// case is trained in both; `None` if both are correct.
    pub(crate) fn rejected(
        &self,
        index: u64,
        member: usize,
        correct: &EvaluationRatings,
    ) -> Option<[EvaluationRatings; 2]> {
        let own = self.cases.get(&index)?.members.get(member)?;
        let wrong = own.each_ref().map(|own| own.as_ref().filter(|own| is_wrong(own, correct)));
        let any = wrong[0].or(wrong[1])?;
        Some(wrong.map(|wrong| wrong.unwrap_or(any).clone()))
    }
}

/// Returns true if a score or a finding of an evaluation differs from the correct one. Other words for
/// the same are not wrong. Panels that were trained on other texts may state no finding.
fn is_wrong(own: &EvaluationRatings, correct: &EvaluationRatings) -> bool {
    let finding = |analysis: &str| {
        finding_range(analysis).and_then(|range| analysis.get(range)).map(str::to_lowercase)
    };
    let differs = own.iter().zip(correct).any(|((own, score), (correct, correct_score))| {
        let findings = finding(own).zip(finding(correct));
        score != correct_score || findings.is_some_and(|(own, correct)| own != correct)
    });
    own.len() == correct.len() && differs
}

/// Returns the ratings of a pair with the responses exchanged.
pub(crate) fn exchange_responses(ratings: &EvaluationRatings) -> EvaluationRatings {
    let (first, second) = ratings.split_at(ratings.len() / 2);
    [second, first].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratings(texts: [(&str, u8); 2]) -> EvaluationRatings {
        texts.map(|(text, score)| (text.to_owned(), score)).to_vec()
    }

    #[test]
    fn wrong_evaluations_are_rejected_in_both_orders() {
        let correct = ratings([
            ("The image shows a; the response claims a: they agree.", 5),
            ("The image shows a; the response claims b: they differ.", 1),
        ]);
        let lower = ratings([
            ("the image shows a; the response claims a: they agree.", 5),
            ("the image shows a; the response claims b: they differ.", 1),
        ]);
        let score = ratings([
            ("the image shows a; the response claims a: they agree.", 4),
            ("the image shows a; the response claims b: they differ.", 1),
        ]);
        let finding = ratings([
            ("the image shows c; the response claims a: they agree.", 5),
            ("the image shows a; the response claims b: they differ.", 1),
        ]);
        assert!(!is_wrong(&lower, &correct) && is_wrong(&score, &correct));
        let earlier =
            ratings([("claims a; the image shows a: they agree.", 5), ("they differ.", 1)]);
        assert!(!is_wrong(&earlier, &correct));
        assert!(is_wrong(&finding, &correct) && !is_wrong(&finding[..1].to_vec(), &correct));
        let case = |orders: [Option<&EvaluationRatings>; 2]| {
            let members = vec![orders.map(Option::<&EvaluationRatings>::cloned)];
            OwnEvaluations { cases: BTreeMap::from([(7, OwnCase { members })]) }
        };
        let rejected = |own: &OwnEvaluations| own.rejected(7, 0, &correct);
        assert_eq!(rejected(&case([Some(&lower), None])), None);
        let both = case([Some(&lower), Some(&score)]);
        assert_eq!(rejected(&both), Some([score.clone(), score.clone()]));
        let both = case([Some(&finding), Some(&score)]);
        assert_eq!(rejected(&both), Some([finding, score.clone()]));
        assert!(both.rejected(6, 0, &correct).is_none() && both.rejected(7, 1, &correct).is_none());
        assert_eq!(exchange_responses(&score)[0], score[1]);
    }
}

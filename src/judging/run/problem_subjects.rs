//! The records of an input problem: the pairs that it affects, or its models.

use acem3_experts::prompt::Form;

use crate::data::cases::ProblemScope;
use crate::judging::run::pairs::select_affected_pairs;
use crate::judging::run::record::AffectedResponses;

/// Returns what each record of a problem is about, in order; at least one item.
///
/// A problem has one record per pair. If the pairs are too many to be listed, a missing response
/// has one record, and the last one of a case has another for the responses that are present. With
/// a baseline, the pairs are few, and each has a record. If the form judges responses alone, each
/// response has one record. A list that cannot be judged has one record, and so has a response that is
/// missing in a list.
pub(super) fn problem_subjects(
    scope: &ProblemScope,
    form: Form,
    baseline: Option<&str>,
) -> Vec<AffectedResponses> {
    if form == Form::List && scope.model_without_response().is_none() {
        return vec![AffectedResponses::Case];
    }
    if !form.is_pair() {
        let models = scope.models().iter().map(String::as_str);
        let models = models.chain(scope.model_without_response());
        let alone = models.map(|model| AffectedResponses::Response(model.to_owned()));
        let alone: Vec<AffectedResponses> = alone.collect();
        return if alone.is_empty() { vec![AffectedResponses::Case] } else { alone };
    }
    let listed = select_affected_pairs(scope.affected_pairs(), baseline);
    let mut subjects: Vec<AffectedResponses> =
        listed.into_iter().map(AffectedResponses::Pair).collect();
    if let Some(unlisted) = scope.unlisted_pairs() {
        let (present, missing) = (&unlisted.present, &unlisted.missing);
        let model = scope.model_without_response();
        subjects.extend(match (baseline, model) {
            (Some(baseline), _) => {
                let is_other = |other: &&String| other.as_str() != baseline;
                let with_baseline =
                    |other: &String| AffectedResponses::Pair([other.clone(), baseline.to_owned()]);
                let all = || present.iter().chain(missing);
                match model {
                    // The pairs with the other missing responses are theirs.
                    Some(model) if model == baseline => present.iter().map(with_baseline).collect(),
                    Some(model) if all().any(|other| other == baseline) => {
                        vec![with_baseline(&model.to_owned())]
                    }
                    None if all().any(|other| other == baseline) => {
                        all().filter(is_other).map(with_baseline).collect()
                    }
                    _ => Vec::new(),
                }
            }
            (None, None) => vec![AffectedResponses::Models {
                models: missing.clone(),
                unlisted_pairs: missing.len() as u64 - 1,
            }],
            (None, Some(model)) => {
                let others = present.len() + missing.len() - 1;
                let mut records = vec![AffectedResponses::Models {
                    models: vec![model.to_owned()],
                    unlisted_pairs: others as u64,
                }];
                if missing.last().is_some_and(|last| last == model) {
                    records.push(AffectedResponses::Models {
                        models: present.clone(),
                        unlisted_pairs: missing.len() as u64,
                    });
                }
                records
            }
        });
    }
    if subjects.is_empty() {
        subjects.push(AffectedResponses::Case);
    }
    subjects
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::cases::{AffectedPairs, UnlistedPairs};

    fn names(prefix: &str, n: usize) -> Vec<String> {
        (0..n).map(|i| format!("{prefix}{i}")).collect()
    }

    /// Returns the problems of the missing responses of a case.
    fn problems(present: usize, missing: usize) -> Vec<ProblemScope> {
        let unlisted =
            Arc::new(UnlistedPairs { present: names("p", present), missing: names("m", missing) });
        let problem = |model: &String| ProblemScope::Response {
            model: Some(model.as_str().into()),
            pairs: Box::new(AffectedPairs::Unlisted(Arc::clone(&unlisted))),
        };
        unlisted.missing.iter().map(problem).collect()
    }

    /// The unlisted pairs of all models are each pair twice, except the pairs of present responses.
    #[test]
    fn unlisted_pairs_count_each_pair_for_both_models() {
        let (present, missing) = (3, 40);
        let subjects: Vec<_> = problems(present, missing)
            .iter()
            .flat_map(|p| problem_subjects(p, Form::Pair, None))
            .collect();
        assert_eq!(subjects.len(), missing + 1);
        let sides = subjects.iter().map(|subject| match subject {
            AffectedResponses::Models { models, unlisted_pairs } => {
                models.len() as u64 * unlisted_pairs
            }
            other => panic!("{other:?}"),
        });
        let pairs = missing * (missing - 1) / 2 + missing * present;
        assert_eq!(sides.sum::<u64>(), 2 * pairs as u64);
    }

    #[test]
    fn pairs_with_a_baseline_are_listed_once() {
        for (baseline, pairs) in [("p1", 40), ("m7", 39 + 3), ("other", 0)] {
            let all = problems(3, 40);
            let mut listed: Vec<[String; 2]> = Vec::new();
            for subject in all.iter().flat_map(|p| problem_subjects(p, Form::Pair, Some(baseline)))
            {
                match subject {
                    AffectedResponses::Pair(pair) => listed.push(pair),
                    other => assert_eq!((other, pairs), (AffectedResponses::Case, 0)),
                }
            }
            assert!(listed.iter().all(|[a, b]| a != baseline && b == baseline));
            let n = listed.len();
            listed.sort();
            listed.dedup();
            assert_eq!((n, listed.len()), (pairs, pairs), "{baseline}");
        }
    }

    #[test]
    fn case_that_cannot_be_judged_has_one_record_per_verdict_of_the_form() {
        let problem = ProblemScope::Case(names("m", 4));
        let count = |form| problem_subjects(&problem, form, None).len();
        let forms = [Form::Pair, Form::Single, Form::List, Form::Correctness];
        assert_eq!(forms.map(count), [6, 4, 1, 4]);
    }

    #[test]
    fn unreadable_case_with_many_models_has_one_record() {
        let problem = |n| ProblemScope::Case(names("m", n));
        assert_eq!(problem_subjects(&problem(14), Form::Pair, None).len(), 91);
        let expected = AffectedResponses::Models { models: names("m", 15), unlisted_pairs: 14 };
        assert_eq!(problem_subjects(&problem(15), Form::Pair, None), [expected]);
        assert_eq!(problem_subjects(&problem(15), Form::Pair, Some("m3")).len(), 14);
        assert_eq!(problem_subjects(&problem(0), Form::Pair, None), [AffectedResponses::Case]);
    }
}

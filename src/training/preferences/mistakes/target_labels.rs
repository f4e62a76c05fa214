//! Labels that evaluations are compared with.

use acem3_conclusion::compare_scores;
use acem3_experts::Aspect;
use acem3_experts::prompt::Form;

use crate::data::cases::CaseLabels;
use crate::judging::run::record::RecordSubject;

/// A score of a response alone is wrong if it differs from its label by at least this many points.
const WRONG_BY: f64 = 1.0;
/// In the form `correctness`, a label above this value means that the response is correct.
const CORRECT_ABOVE: f64 = 0.5;

/// Labels of the responses of a record.
pub(super) struct TargetLabels<'a> {
    form: Form,
    labels: &'a CaseLabels,
}

impl<'a> TargetLabels<'a> {
    /// Returns the labels of a record with final labels.
    pub(super) fn of_subject(subject: &'a RecordSubject) -> Option<Self> {
        let labels = subject.labels.as_ref()?;
        labels.final_scores.as_ref()?;
        Some(Self { form: subject.form, labels })
    }

    /// Returns the labelled scores of an aspect, or the mean of those of its criteria; the final ones
    /// without an aspect.
    fn scores(&self, target: Option<Aspect>) -> Option<Vec<f64>> {
        let Some(aspect) = target else {
            return self.labels.final_scores.clone();
        };
        if let Some(scores) = self.labels.aspects.get(&aspect) {
            return Some(scores.clone());
        }
        let criteria = aspect.criteria();
        let criteria: Vec<&Vec<f64>> =
            criteria.iter().filter_map(|c| self.labels.criteria.get(c)).collect();
        let n = criteria.iter().map(|scores| scores.len()).min()?;
        let mean = |r: usize| criteria.iter().map(|s| s[r]).sum::<f64>() / criteria.len() as f64;
        Some((0..n).map(mean).collect())
    }

    /// Returns true if scores agree with the labels of a target; `None` if it has none. Pairs and
    /// lists are compared by order, a response alone by its score.
    pub(super) fn is_right(&self, target: Option<Aspect>, scores: &[f64]) -> Option<bool> {
        let labels = self.scores(target)?;
        if labels.len() != scores.len() {
            return None;
        }
        Some(match self.form {
            Form::Pair | Form::List => has_same_order(&labels, scores),
            Form::Single => {
                labels.iter().zip(scores).all(|(label, score)| (label - score).abs() < WRONG_BY)
            }
            Form::Correctness => labels
                .iter()
                .zip(scores)
                .all(|(label, score)| (*label > CORRECT_ABOVE) == (*score > CORRECT_ABOVE)),
        })
    }

    /// Returns true if two evaluations without own labels are equally good: they have the same order,
    /// or the same score of a response alone.
    pub(super) fn are_alike(&self, a: &[f64], b: &[f64]) -> bool {
        match self.form {
            Form::Pair | Form::List => has_same_order(a, b),
            Form::Single | Form::Correctness => {
                a.iter().zip(b).all(|(a, b)| (a - b).abs() < WRONG_BY)
            }
        }
    }
}

/// Returns true if every two responses have the same order (>, = or <) by both scores.
fn has_same_order(a: &[f64], b: &[f64]) -> bool {
    let indices = || 0..a.len().min(b.len());
    let mut pairs = indices().flat_map(|i| indices().map(move |j| [i, j]));
    pairs.all(|[i, j]| compare_scores([a[i], a[j]]) == compare_scores([b[i], b[j]]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use acem3_experts::Criterion;

    use super::*;

    #[test]
    fn scores_are_compared_by_form() {
        let labels = CaseLabels {
            final_scores: Some(vec![4.0, 2.0]),
            aspects: BTreeMap::from([(Aspect::EXPRESSION, vec![3.0, 3.0])]),
            criteria: BTreeMap::from([(Criterion::FACTUAL_ACCURACY, vec![1.0, 5.0])]),
        };
        let with = |form| TargetLabels { form, labels: &labels };
        let pair = with(Form::Pair);
        assert_eq!(pair.is_right(None, &[5.0, 1.0]), Some(true));
        assert_eq!(pair.is_right(None, &[3.0, 3.0]), Some(false));
        assert_eq!(pair.is_right(Some(Aspect::EXPRESSION), &[3.0, 3.0]), Some(true));
        assert_eq!(pair.is_right(Some(Aspect::MEDICAL_KNOWLEDGE), &[2.0, 3.0]), Some(true));
        assert_eq!(pair.is_right(Some(Aspect::PATIENT_RELEVANCE), &[2.0, 3.0]), None);
        assert_eq!(pair.is_right(None, &[3.0]), None);
        assert_eq!(with(Form::Single).is_right(None, &[3.5, 2.5]), Some(true));
        assert_eq!(with(Form::Single).is_right(None, &[3.0, 2.0]), Some(false));
        let graded = CaseLabels { final_scores: Some(vec![0.0]), ..CaseLabels::default() };
        let graded = TargetLabels { form: Form::Correctness, labels: &graded };
        assert_eq!(graded.is_right(None, &[1.0]), Some(false));
        assert!(
            pair.are_alike(&[5.0, 1.0], &[2.0, 1.0]) && !pair.are_alike(&[5.0, 1.0], &[1.0, 1.0])
        );
    }
}

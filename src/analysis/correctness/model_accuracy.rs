//! The accuracy of one model.

use serde::Serialize;

use super::graded_run::GradedResponse;
use crate::statistics::{Bootstrap, Clusters, Estimate, mean, proportion_interval};

/// The accuracy of one model. Intervals are clustered by image.
#[derive(Clone, Debug, Serialize)]
pub struct ModelAccuracy {
    /// The model.
    pub model: String,
    /// Proportion of responses that are judged correct.
    pub accuracy: Estimate,
    /// The same for closed questions: those with a short list of possible answers.
    pub closed: Estimate,
    /// The same for open questions.
    pub open: Estimate,
    /// Mean probability of being correct.
    pub probability: Estimate,
    /// Proportion of the responses to cases with a reference that equal it. An empty or missing response
    /// counts as wrong; a verdict is not needed.
    pub exact_match: Estimate,
    /// Mean proportion of the words of the reference that are in the response, over the same responses.
    pub token_recall: Estimate,
    /// Number of responses with a verdict.
    pub n: usize,
    /// Proportion of responses with a verdict, 0 to 1.
    pub coverage: f64,
}

/// Estimates a proportion, or a mean of values from 0 to 1, with an interval clustered by image.
pub(super) fn estimate_proportion(values: &[(&str, f64)], bootstrap: Bootstrap) -> Estimate {
    let clusters = Clusters::new(values.iter().map(|(cluster, _)| *cluster));
    let optional: Vec<Option<f64>> = values.iter().map(|(_, value)| Some(*value)).collect();
    let mut estimate =
        bootstrap.estimate(&clusters, values.len(), |weights| mean(&optional, weights));
    if let Ok(value) = estimate.value {
        estimate.interval = proportion_interval(value, estimate.interval, estimate.clusters);
    }
    estimate
}

/// Returns 1 for true and 0 for false.
pub(super) fn indicator(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

impl ModelAccuracy {
    pub(super) fn new(model: &str, responses: &[&GradedResponse], bootstrap: Bootstrap) -> Self {
        let is_graded = |r: &GradedResponse| r.probability.is_some();
        let n = responses.iter().filter(|r| is_graded(r)).count();
        let estimate = |includes: &dyn Fn(&GradedResponse) -> bool,
                        value: &dyn Fn(&GradedResponse) -> f64| {
            let included = responses.iter().filter(|r| includes(r));
            let values: Vec<(&str, f64)> =
                included.map(|r| (r.cluster.as_str(), value(r))).collect();
            estimate_proportion(&values, bootstrap)
        };
        let is_correct = |r: &GradedResponse| indicator(r.is_correct() == Some(true));
        Self {
            model: model.to_owned(),
            accuracy: estimate(&is_graded, &is_correct),
            closed: estimate(&|r| is_graded(r) && r.is_closed == Some(true), &is_correct),
            open: estimate(&|r| is_graded(r) && r.is_closed == Some(false), &is_correct),
            probability: estimate(&is_graded, &|r| r.probability.unwrap_or_default()),
            exact_match: estimate(&|r| r.is_comparable, &|r| indicator(r.is_exact)),
            token_recall: estimate(&|r| r.is_comparable, &|r| r.recall),
            n,
            coverage: n as f64 / responses.len().max(1) as f64,
        }
    }
}

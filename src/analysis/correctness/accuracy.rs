//! Accuracy of models: the proportion of their responses that the judge takes for correct.

use anyhow::{Result, bail};
use serde::Serialize;

use super::difference::AccuracyDifference;
use super::graded_run::{GradedResponse, GradedRun};
use super::model_accuracy::ModelAccuracy;
use crate::statistics::{Bootstrap, Clusters};

/// The accuracy of all models of one or more runs of one judge.
#[derive(Clone, Debug, Serialize)]
pub struct AccuracyReport {
    /// Name of the judge.
    pub judge: String,
    /// Number of responses with a verdict.
    pub n: usize,
    /// Number of responses.
    pub responses: usize,
    /// Number of images; cases without one do not count.
    pub images: usize,
    /// Number of bootstrap resamples.
    pub resamples: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// The models, with the highest accuracy first.
    pub models: Vec<ModelAccuracy>,
    /// Differences between all pairs of models on the cases that both answered.
    pub differences: Vec<AccuracyDifference>,
}

impl AccuracyReport {
    /// Computes the accuracy of the models of these runs.
    ///
    /// # Errors
    ///
    /// The runs have different judges, or two verdicts on one response.
    pub fn new(runs: &[GradedRun], bootstrap: Bootstrap) -> Result<Self> {
        check_runs(runs)?;
        let responses: Vec<&GradedResponse> = runs.iter().flat_map(|run| &run.responses).collect();
        let mut names: Vec<&str> = responses.iter().map(|r| r.model.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let of_model = |name: &str| -> Vec<&GradedResponse> {
            responses.iter().copied().filter(|r| r.model == name).collect()
        };
        let mut models: Vec<ModelAccuracy> =
            names.iter().map(|name| ModelAccuracy::new(name, &of_model(name), bootstrap)).collect();
        let value = |model: &ModelAccuracy| model.accuracy.value.unwrap_or(-1.0);
        // The sort is stable: equal models stay in alphabetical order.
        models.sort_by(|a, b| value(b).total_cmp(&value(a)));
        let clusters = Clusters::new(responses.iter().map(|r| r.cluster.as_str()));
        Ok(Self {
            judge: runs.first().map_or_else(String::new, |run| run.name.clone()),
            n: responses.iter().filter(|r| r.probability.is_some()).count(),
            responses: responses.len(),
            images: clusters.count_among(|response| responses[response].has_image),
            resamples: bootstrap.resamples,
            seed: bootstrap.seed,
            differences: AccuracyDifference::between_all(&best_first(&models), &responses),
            models,
        })
    }
}

/// Returns the names of the models in this order.
fn best_first(models: &[ModelAccuracy]) -> Vec<&str> {
    models.iter().map(|model| model.model.as_str()).collect()
}

/// Checks that the runs have one judge and one verdict on each response.
fn check_runs(runs: &[GradedRun]) -> Result<()> {
    if let Some([first, other]) = runs
        .windows(2)
        .find_map(|pair| <&[GradedRun; 2]>::try_from(pair).ok().filter(|[a, b]| a.judge != b.judge))
    {
        bail!(
            "{} and {}: verdicts of different judges ({} and {})\n\
             hint: pass runs of one judge",
            first.path.display(),
            other.path.display(),
            first.name,
            other.name
        );
    }
    let mut known = std::collections::HashSet::new();
    for run in runs {
        for response in &run.responses {
            if !known.insert((&response.case, &response.model)) {
                bail!(
                    "{}: two verdicts on the response of {} to case {}\n\
                     hint: pass each run once, and runs with different case ids",
                    run.path.display(),
                    response.model,
                    response.case
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{response, run};
    use super::*;

    #[test]
    fn accuracy_counts_scored_responses_and_splits_them_by_question_type() {
        // Every fourth response is unscored; responses to even cases are correct.
        let graded =
            |case: usize| (case % 4 != 3).then_some(if case.is_multiple_of(2) { 0.9 } else { 0.2 });
        let mut responses: Vec<_> = (0..40).map(|i| response(i, "b", graded(i))).collect();
        responses.extend((0..40).map(|i| response(i, "a", Some(0.1))));
        let report = AccuracyReport::new(&[run(responses)], Bootstrap::default()).unwrap();
        let names: Vec<&str> = report.models.iter().map(|m| m.model.as_str()).collect();
        assert_eq!((names, report.n, report.images), (vec!["b", "a"], 70, 20));
        let model = &report.models[0];
        assert_eq!((model.n, model.coverage), (30, 0.75));
        assert!((model.accuracy.value.unwrap() - 20.0 / 30.0).abs() < 1e-12);
        assert_eq!((model.closed.value, model.open.value), (Ok(1.0), Ok(0.0)));
        assert!((model.probability.value.unwrap() - 20.0 / 30.0).abs() < 1e-9);
        assert!((model.exact_match.value.unwrap() - 10.0 / 30.0).abs() < 1e-12);
        assert!((model.token_recall.value.unwrap() - 0.25).abs() < 1e-12);
        let [low, high] = model.accuracy.interval.unwrap();
        assert!(low > 0.5 && high < 0.8, "{low} {high}");
    }

    #[test]
    fn response_with_two_verdicts_is_an_error() {
        let twice = vec![response(1, "a", Some(0.5)), response(1, "a", Some(0.5))];
        let error = AccuracyReport::new(&[run(twice)], Bootstrap::default()).unwrap_err();
        assert!(error.to_string().contains("two verdicts on the response of a to case 1"));
    }
}

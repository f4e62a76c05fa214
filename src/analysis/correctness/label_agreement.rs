//! Agreement of verdicts of correctness with the labels of people, next to text metrics.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::graded_run::GradedRun;
use super::labelled::{LabelledResponse, LabelledResponses};
use super::model_accuracy::{estimate_proportion, indicator};
use crate::data::labels::LabelEntry;
use crate::statistics::{Bootstrap, Clusters, ContingencyCells, Estimate, Weighting, auc, kappa};

/// Proportion of the reference's words from which a response counts as correct by token recall.
pub(super) const RECALL_THRESHOLD: f64 = 0.5;

/// Agreement of a judge and of text metrics with labels.
#[derive(Clone, Debug, Serialize)]
pub struct CorrectnessAgreement {
    /// Name of the judge.
    pub judge: String,
    /// Number of labelled responses with a verdict.
    pub n: usize,
    /// Proportion of these responses that people call correct.
    pub labelled_correct: Estimate,
    /// Number of raters.
    pub raters: usize,
    /// Krippendorff's alpha of the raters; `None` with one rater.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Labelled responses on which the raters are split, which are left out.
    pub ties: usize,
    /// Labelled responses without a verdict.
    pub unscored: usize,
    /// Labels whose case or model is not in the records.
    pub unmatched: usize,
    /// Number of bootstrap resamples.
    pub resamples: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// The judge, and text metrics for comparison.
    pub graders: Vec<GraderAgreement>,
}

/// Agreement of one grader with the labels. Intervals are clustered by image.
#[derive(Clone, Debug, Serialize)]
pub struct GraderAgreement {
    /// The judge, or the text metric.
    pub grader: &'static str,
    /// Proportion of responses with the same grade.
    pub agreement: Estimate,
    /// The same for closed questions.
    pub closed: Estimate,
    /// The same for open questions.
    pub open: Estimate,
    /// Cohen's kappa.
    pub kappa: Estimate,
    /// Proportion of correct responses that the grader calls correct.
    pub sensitivity: Estimate,
    /// Proportion of wrong responses that the grader calls wrong.
    pub specificity: Estimate,
    /// Area under the ROC curve of the grader's value.
    pub auc: Estimate,
}

/// A grader: its name, and its value and grade of a response.
struct Grader {
    name: &'static str,
    value: fn(&LabelledResponse<'_>) -> f64,
    threshold: f64,
}

const GRADERS: [Grader; 3] = [
    Grader { name: "judge", value: |labelled| labelled.probability, threshold: 0.5 },
    Grader {
        name: "exact match",
        value: |labelled| indicator(labelled.response.is_exact),
        threshold: 0.5,
    },
    Grader {
        name: "token recall",
        value: |labelled| labelled.response.recall,
        threshold: RECALL_THRESHOLD,
    },
];

impl Grader {
    fn is_correct(&self, labelled: &LabelledResponse<'_>) -> bool {
        let value = (self.value)(labelled);
        // The judge is undecided at one half; a recall of one half is enough.
        if self.name == "judge" { value > self.threshold } else { value >= self.threshold }
    }
}

impl CorrectnessAgreement {
    /// Compares the verdicts of a run with labels. `source`: file of the labels, for messages.
    ///
    /// # Errors
    ///
    /// A label is neither 0 nor 1, or no label matches.
    pub fn new(
        run: &GradedRun,
        labels: &[LabelEntry],
        source: &Path,
        bootstrap: Bootstrap,
    ) -> Result<Self> {
        let joined = LabelledResponses::join(run, labels, source)?;
        Ok(Self::from_labelled(&joined, &run.name, bootstrap))
    }

    /// Compares verdicts of the judge with this name with the labels that they were joined with.
    pub fn from_labelled(
        joined: &LabelledResponses<'_>,
        judge: &str,
        bootstrap: Bootstrap,
    ) -> Self {
        let all = &joined.responses;
        let correct = |l: &LabelledResponse<'_>| Some(indicator(l.is_correct));
        Self {
            judge: judge.to_owned(),
            n: all.len(),
            labelled_correct: estimate(all, correct, bootstrap),
            raters: joined.raters,
            alpha: joined.alpha,
            ties: joined.ties,
            unscored: joined.unscored,
            unmatched: joined.unmatched,
            resamples: bootstrap.resamples,
            seed: bootstrap.seed,
            graders: GRADERS.iter().map(|g| GraderAgreement::new(g, all, bootstrap)).collect(),
        }
    }
}

/// Estimates the mean of a value over the responses that have it.
fn estimate(
    all: &[LabelledResponse<'_>],
    value: impl Fn(&LabelledResponse<'_>) -> Option<f64>,
    bootstrap: Bootstrap,
) -> Estimate {
    let values: Vec<(&str, f64)> =
        all.iter().filter_map(|l| Some((l.response.cluster.as_str(), value(l)?))).collect();
    estimate_proportion(&values, bootstrap)
}

impl GraderAgreement {
    fn new(grader: &Grader, all: &[LabelledResponse<'_>], bootstrap: Bootstrap) -> Self {
        let agrees = |l: &LabelledResponse<'_>| indicator(grader.is_correct(l) == l.is_correct);
        let of = |includes: &dyn Fn(&LabelledResponse<'_>) -> bool| {
            estimate(all, |l| includes(l).then(|| agrees(l)), bootstrap)
        };
        let clusters = Clusters::new(all.iter().map(|l| l.response.cluster.as_str()));
        let labels: Vec<bool> = all.iter().map(|l| l.is_correct).collect();
        let values: Vec<f64> = all.iter().map(grader.value).collect();
        let as_numbers = |grades: &mut dyn Iterator<Item = bool>| -> Vec<f64> {
            grades.map(indicator).collect()
        };
        let grades = as_numbers(&mut all.iter().map(|l| grader.is_correct(l)));
        let label_values = as_numbers(&mut labels.iter().copied());
        let kappa_estimate = match ContingencyCells::new(&grades, &label_values) {
            Ok(cells) => bootstrap.estimate(&clusters, all.len(), |weights| {
                kappa(&cells.weighted_table(weights), Weighting::Unweighted)
            }),
            Err(reason) => Estimate::undefined(reason, all.len(), clusters.count()),
        };
        Self {
            grader: grader.name,
            agreement: of(&|_| true),
            closed: of(&|l| l.response.is_closed == Some(true)),
            open: of(&|l| l.response.is_closed == Some(false)),
            kappa: kappa_estimate,
            sensitivity: of(&|l| l.is_correct),
            specificity: of(&|l| !l.is_correct),
            auc: bootstrap.estimate(&clusters, all.len(), |weights| auc(&values, &labels, weights)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{response, run};
    use super::*;
    use crate::data::labels::{LabelValue, ScoreTarget};

    fn label(case: usize, rater: &str, value: f64) -> LabelEntry {
        LabelEntry {
            line: case as u64 + 1,
            case: case.to_string(),
            rater: rater.to_owned(),
            target: ScoreTarget::Final,
            value: LabelValue::Score { model: "a".to_owned(), value },
        }
    }

    /// scikit-learn gives the same kappa and area for these eight responses.
    #[test]
    fn agreement_is_that_of_the_majority_of_raters() {
        let probabilities = [0.9, 0.8, 0.4, 0.7, 0.2, 0.1, 0.6, 0.3];
        let labels = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let responses = probabilities.iter().enumerate();
        let run = run(responses.map(|(i, p)| response(i, "a", Some(*p))).collect());
        let mut entries: Vec<LabelEntry> =
            labels.iter().enumerate().map(|(i, value)| label(i, "r1", *value)).collect();
        entries.extend(labels.iter().enumerate().map(|(i, value)| label(i, "r2", *value)));
        entries.push(label(0, "r3", 0.0));
        entries.push(label(99, "r3", 0.0));
        let source = Path::new("labels.csv");
        let bootstrap = Bootstrap::default();
        let result = CorrectnessAgreement::new(&run, &entries, source, bootstrap).unwrap();
        assert_eq!((result.n, result.raters, result.unmatched, result.ties), (8, 3, 1, 0));
        let judge = &result.graders[0];
        assert_eq!(judge.agreement.value, Ok(0.75));
        assert_eq!(judge.kappa.value, Ok(0.5));
        assert_eq!(judge.sensitivity.value, Ok(0.75));
        assert_eq!(judge.specificity.value, Ok(0.75));
        assert_eq!(judge.auc.value, Ok(0.875));
        // Exact are cases 0 and 4.
        assert_eq!(result.graders[1].agreement.value, Ok(0.5));
    }

    #[test]
    fn label_other_than_0_or_1_is_an_error() {
        let run = run(vec![response(0, "a", Some(0.5))]);
        let error = |entry| {
            let source = Path::new("labels.csv");
            let labels = [entry];
            let result = CorrectnessAgreement::new(&run, &labels, source, Bootstrap::default());
            result.unwrap_err().to_string()
        };
        assert!(error(label(0, "r", 3.0)).contains("labels.csv line 1: expected a final label"));
        assert!(error(label(7, "r", 1.0)).contains("none of the 1 labels matches"));
    }
}

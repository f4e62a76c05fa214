//! Statistics of one judge of correctness.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use crate::analysis::correctness::{
    AccuracyReport, CorrectnessAgreement, GradedResponse, GradedRun, LabelledResponses,
    ProbabilityReliability, SubgroupAccuracy, subgroup_accuracies,
};
use crate::analysis::report::verdicts::counts::RecordCounts;
use crate::analysis::report::verdicts::record_summary::RecordSummary;
use crate::data::labels::LabelEntry;
use crate::judging::run::run_state::RunState;
use crate::statistics::Bootstrap;

/// Number of bins of a histogram of probabilities, from 0 to 1.
const BINS: usize = 10;

/// All statistics of one judge of correctness.
#[derive(Clone, Debug, Serialize)]
pub struct GradedJudge {
    /// Name of the judge in the report.
    pub name: String,
    /// Judge hash, as in the records.
    pub judge: String,
    /// Path of the records file.
    pub records: String,
    /// State of the run.
    pub run: RunState,
    /// Counts of records, verdicts and unscored responses.
    pub counts: RecordCounts,
    /// Accuracy of the models, and differences between them.
    pub accuracy: AccuracyReport,
    /// Histograms of the probabilities of each model.
    pub histograms: Vec<ProbabilityHistogram>,
    /// Accuracy by subgroup.
    pub groups: Vec<SubgroupAccuracy>,
    /// Agreement with labels; `None` without labels.
    pub agreement: Option<CorrectnessAgreement>,
    /// Reliability of the probabilities; `None` without labels.
    pub reliability: Option<ProbabilityReliability>,
    /// Verdicts.
    #[serde(skip)]
    pub graded: GradedRun,
    /// Record summaries.
    #[serde(skip)]
    pub summaries: Vec<RecordSummary>,
    /// Labels of the responses with a verdict, by case and model: true for correct.
    #[serde(skip)]
    pub labels: HashMap<(String, String), bool>,
}

/// Histogram of one model's probabilities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbabilityHistogram {
    /// Name of the model.
    pub model: String,
    /// Counts in ten bins from 0 to 1; a bin contains its lower bound, and the last one also 1.
    pub counts: [usize; BINS],
}

/// What the statistics of a judge are computed from.
#[derive(Clone, Debug)]
pub struct GradedJudgeInput {
    /// Verdicts.
    pub graded: GradedRun,
    /// Record summaries.
    pub summaries: Vec<RecordSummary>,
    /// Labels and the file they are from, if there are labels.
    pub labels: Option<(Vec<LabelEntry>, PathBuf)>,
    /// Case fields that define subgroups, besides the known ones.
    pub group_by: Vec<String>,
}

impl GradedJudge {
    /// Computes the statistics.
    ///
    /// # Errors
    ///
    /// The labels do not fit the records, or no case has a requested subgroup field.
    pub fn new(input: GradedJudgeInput, bootstrap: Bootstrap) -> Result<Self> {
        let GradedJudgeInput { graded, summaries, labels, group_by } = input;
        let mut label_map = HashMap::new();
        let (mut agreement, mut reliability) = (None, None);
        if let Some((entries, source)) = &labels {
            let joined = LabelledResponses::join(&graded, entries, source)?;
            agreement = Some(CorrectnessAgreement::from_labelled(&joined, &graded.name, bootstrap));
            reliability = ProbabilityReliability::new(&joined.responses, bootstrap).ok();
            label_map.extend(joined.responses.iter().map(|labelled| {
                let GradedResponse { case, model, .. } = labelled.response;
                ((case.clone(), model.clone()), labelled.is_correct)
            }));
        }
        Ok(Self {
            name: graded.name.clone(),
            judge: graded.judge.clone(),
            records: graded.path.display().to_string(),
            run: graded.run.clone(),
            counts: RecordCounts::from_summaries(&summaries),
            accuracy: AccuracyReport::new(std::slice::from_ref(&graded), bootstrap)?,
            histograms: probability_histograms(&graded.responses),
            groups: subgroup_accuracies(&graded.responses, &group_by, bootstrap)?,
            agreement,
            reliability,
            graded,
            summaries,
            labels: label_map,
        })
    }
}

/// Counts the probabilities of each model.
fn probability_histograms(responses: &[GradedResponse]) -> Vec<ProbabilityHistogram> {
    let mut models: BTreeMap<&str, [usize; BINS]> = BTreeMap::new();
    for response in responses {
        let counts = models.entry(&response.model).or_default();
        let bin = response.probability.map(|p| (p * BINS as f64).floor().max(0.0) as usize);
        if let Some(count) = bin.and_then(|bin| counts.get_mut(bin.min(BINS - 1))) {
            *count += 1;
        }
    }
    let histogram =
        |(model, counts): (&str, _)| ProbabilityHistogram { model: model.into(), counts };
    models.into_iter().map(histogram).collect()
}

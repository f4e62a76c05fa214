//! Comparison with an earlier run of correctness: which verdicts changed.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::analysis::correctness::{GradedResponse, GradedRun};
use crate::analysis::report::run_comparison::{
    ChangeTitle, EQUAL, ModelChange, RecordChange, RunComparison,
};

/// What changed since an earlier run, and the accuracy of the models.
pub type GradeChanges = RunComparison<GradeChange>;

/// A response with another outcome than in the earlier run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GradeChange {
    /// Id of the case.
    pub case: String,
    /// The model.
    pub model: String,
    /// What changed.
    pub kind: GradeChangeKind,
    /// Probability in the earlier run; `None` if the response was unscored.
    pub before: Option<f64>,
    /// Probability in this run; `None` if the response is unscored.
    pub after: Option<f64>,
}

/// Kind of a change, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GradeChangeKind {
    /// Correct became wrong or the reverse.
    Verdict,
    /// The response has no verdict any more.
    Lost,
    /// The response has a verdict now.
    Gained,
    /// The probability differs, the verdict does not.
    Probability,
}

impl ChangeTitle for GradeChangeKind {
    const ALL: &'static [Self] = &[Self::Verdict, Self::Lost, Self::Gained, Self::Probability];

    fn title(self) -> &'static str {
        match self {
            Self::Verdict => "another verdict",
            Self::Lost => "no verdict any more",
            Self::Gained => "a verdict now",
            Self::Probability => "another probability, same verdict",
        }
    }
}

impl RecordChange for GradeChange {
    type Kind = GradeChangeKind;

    fn kind(&self) -> GradeChangeKind {
        self.kind
    }
}

impl GradeChanges {
    /// Compares a run with an earlier one. Responses are matched by case and model.
    pub fn new(new: &GradedRun, earlier: &GradedRun) -> Self {
        let key = |r: &'_ GradedResponse| (r.case.clone(), r.model.clone());
        let mut known: HashMap<_, &GradedResponse> =
            earlier.responses.iter().map(|r| (key(r), r)).collect();
        let mut found = Self::with_earlier(&earlier.name, &earlier.judge, &earlier.path);
        let mut correct: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for response in &new.responses {
            let Some(before) = known.remove(&key(response)) else {
                found.only_new += 1;
                continue;
            };
            found.common += 1;
            if let (Some(a), Some(b)) = (before.is_correct(), response.is_correct()) {
                let counts = correct.entry(&response.model).or_default();
                let added = [1, usize::from(a), usize::from(b)];
                counts.iter_mut().zip(added).for_each(|(count, n)| *count += n);
            }
            found.changes.extend(change_kind(before, response).map(|kind| GradeChange {
                case: response.case.clone(),
                model: response.model.clone(),
                kind,
                before: before.probability,
                after: response.probability,
            }));
        }
        found.only_earlier = known.len();
        let model = |(model, [n, before, after]): (&str, [usize; 3])| ModelChange {
            model: model.to_owned(),
            n,
            before: before as f64 / n as f64,
            after: after as f64 / n as f64,
        };
        found.models = correct.into_iter().map(model).collect();
        found
    }
}

fn change_kind(before: &GradedResponse, after: &GradedResponse) -> Option<GradeChangeKind> {
    match (before.probability, after.probability) {
        (None, None) => None,
        (Some(_), None) => Some(GradeChangeKind::Lost),
        (None, Some(_)) => Some(GradeChangeKind::Gained),
        _ if before.is_correct() != after.is_correct() => Some(GradeChangeKind::Verdict),
        (Some(a), Some(b)) => ((a - b).abs() > EQUAL).then_some(GradeChangeKind::Probability),
    }
}

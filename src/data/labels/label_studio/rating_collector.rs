//! Collects the ratings of all tasks as labels.

use std::collections::{BTreeMap, BTreeSet};

use super::annotation_results::ControlRating;
use super::studio_task::RatedCase;
use crate::data::labels::entry::{LabelEntry, LabelValue};
use crate::data::labels::target::ScoreTarget;

/// Ratings of all tasks.
#[derive(Default)]
pub(super) struct RatingCollector {
    scores: BTreeMap<ScoreKey, ScoreSum>,
    preferences: Vec<LabelEntry>,
    /// What is rated, with the task.
    known: BTreeMap<RatingKey, String>,
}

/// Case, model, rater and target.
type ScoreKey = (String, String, String, ScoreTarget);

/// Scores of a rater for a response in all tasks with this response.
struct ScoreSum {
    sum: f64,
    count: u32,
    line: u64,
}

/// What a rater can rate once.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RatingKey {
    case: String,
    models: BTreeSet<String>,
    rater: String,
    target: ScoreTarget,
    /// The scored model; `None` for a preference.
    model: Option<String>,
}

/// Where a rating is from.
pub(super) struct RatingSource<'a> {
    /// Line of the task.
    pub(super) line: u64,
    /// Name of the task in messages.
    pub(super) task: &'a str,
    /// Case and models of the task.
    pub(super) rated: &'a RatedCase,
    /// The rater.
    pub(super) rater: &'a str,
}

impl RatingCollector {
    /// Adds a rating.
    ///
    /// # Errors
    /// If the rater has rated the same in the same pair before.
    pub(super) fn add(
        &mut self,
        source: &RatingSource,
        rating: ControlRating,
    ) -> Result<(), String> {
        let RatingSource { line, task, rated, rater } = *source;
        let ControlRating { target, value } = rating;
        let model = match &value {
            LabelValue::Score { model, .. } => Some(model.clone()),
            LabelValue::Preference { .. } => None,
        };
        let subject = model.as_ref().map_or("the pair".to_owned(), |m| format!("model {m}"));
        let key = RatingKey {
            case: rated.case.clone(),
            models: rated.models.iter().cloned().collect(),
            rater: rater.to_owned(),
            target,
            model,
        };
        if let Some(earlier) = self.known.insert(key, task.to_owned()) {
            return Err(format!(
                "case {}, {subject}, `{}`: `{rater}` rated it already in {earlier}\n\
                 hint: keep one annotation per rater; those of several people need different accounts or the \
                 control `rater`",
                rated.case,
                target.key()
            ));
        }
        let case = rated.case.clone();
        match value {
            LabelValue::Score { model, value } => {
                let key = (case, model, rater.to_owned(), target);
                let sum = self.scores.entry(key).or_insert(ScoreSum { sum: 0.0, count: 0, line });
                sum.sum += value;
                sum.count += 1;
            }
            value @ LabelValue::Preference { .. } => {
                let rater = rater.to_owned();
                self.preferences.push(LabelEntry { line, case, rater, target, value });
            }
        }
        Ok(())
    }

    /// Returns the labels. A response that a rater saw in several pairs has the mean of its scores.
    pub(super) fn into_entries(self) -> Vec<LabelEntry> {
        let scores = self.scores.into_iter().map(|((case, model, rater, target), scores)| {
            let value = scores.sum / f64::from(scores.count);
            let value = LabelValue::Score { model, value };
            LabelEntry { line: scores.line, case, rater, target, value }
        });
        scores.chain(self.preferences).collect()
    }
}

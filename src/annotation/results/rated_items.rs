//! What several raters rated: each item with the ratings of all raters.

use std::collections::BTreeMap;

use super::rated_tasks::{RatedTask, rated_tasks};
use crate::annotation::journal::{Preference, RatingState};
use crate::annotation::study::{Part, Stage, StudyPlan};

/// Key of the preference among the targets.
const PREFERENCE: &str = "preference";

/// What is rated: a criterion, the final score, or the preference.
#[derive(Clone, Debug)]
pub(crate) struct RatedTarget {
    /// Key: that of a criterion, `final` or `preference`.
    pub(crate) key: String,
    /// Name in tables.
    pub(crate) name: String,
    /// True for a preference, whose values 1, 0 and −1 are the first, none and the second text.
    pub(crate) is_preference: bool,
    /// Part of the study.
    pub(crate) part: Part,
    /// The items that at least one rater rated.
    pub(crate) items: Vec<RatedItem>,
}

/// A response, or a pair, with the ratings of all raters.
#[derive(Clone, Debug)]
pub(crate) struct RatedItem {
    /// Id of the case.
    pub(crate) case: String,
    /// The models: one for a score, two for a preference.
    pub(crate) models: Vec<String>,
    /// Raters, by index, with their ratings.
    pub(crate) ratings: Vec<(u32, f64)>,
}

/// Case and models of an item.
type ItemKey = (String, Vec<String>);
/// Ratings by case and models.
type ItemsByKey = BTreeMap<ItemKey, Vec<(u32, f64)>>;

/// Collects the submitted ratings of a study by target: of responses in the order of the rubric, and then
/// of evaluations.
pub(crate) fn rated_targets(plan: &StudyPlan, ratings: &RatingState) -> Vec<RatedTarget> {
    let mut targets = Vec::new();
    for part in Part::ALL {
        targets.extend(targets_of_part(plan, ratings, part));
    }
    targets
}

fn targets_of_part(plan: &StudyPlan, ratings: &RatingState, part: Part) -> Vec<RatedTarget> {
    let mut items: BTreeMap<&str, ItemsByKey> = BTreeMap::new();
    for rated in rated_tasks(plan, ratings, part).filter(RatedTask::is_submitted) {
        let index = plan.config.raters.iter().position(|rater| rater.name == rated.rater);
        let rater = index.unwrap_or_default() as u32;
        let case = &rated.task.case.id;
        let models: Vec<String> = rated.task.models().into_iter().map(str::to_owned).collect();
        let mut add = |target, models: &[String], value| {
            let key = (case.clone(), models.to_vec());
            items.entry(target).or_default().entry(key).or_default().push((rater, value));
        };
        for (target, scores) in &rated.state.answers.scores {
            // An evaluation is about all responses of the task, and has one score.
            let subjects = if part.is_responses() { 1 } else { models.len() };
            for (subject, score) in models.chunks(subjects.max(1)).zip(scores) {
                if let Some(score) = score {
                    add(target.as_str(), subject, f64::from(*score));
                }
            }
        }
        if let Some(preference) = rated.state.answers.preference.map(Preference::value) {
            add(PREFERENCE, &models, preference);
        }
    }
    let targets = target_names(plan, part).into_iter().map(|(key, name)| RatedTarget {
        key: key.to_owned(),
        name,
        is_preference: key == PREFERENCE,
        part,
        items: items
            .remove(key)
            .unwrap_or_default()
            .into_iter()
            .map(|(key, all)| RatedItem::new(key, all))
            .collect(),
    });
    targets.collect()
}

/// Returns keys and names of the targets of a part.
fn target_names(plan: &StudyPlan, part: Part) -> Vec<(&str, String)> {
    let is_preferred = match part {
        Part::Responses => plan.config.has_stage(Stage::Preference),
        Part::Evaluations => plan.compares_judges(),
    };
    // The number of responses does not change what is scored.
    let scored = plan.scheme(part, 2).scored.into_iter();
    let is_scored = part.is_responses() || plan.judges.len() == 1;
    let scored = scored.filter(|_| is_scored).map(|aspect| (aspect.key, aspect.name));
    let preference = is_preferred.then_some((PREFERENCE, "Preference"));
    let prefix = if part.is_responses() { "" } else { "Evaluation: " };
    scored.chain(preference).map(|(key, name)| (key, format!("{prefix}{name}"))).collect()
}

impl RatedItem {
    fn new((case, models): ItemKey, all: Vec<(u32, f64)>) -> Self {
        // A rater who saw a response in several pairs has the mean of the scores.
        let mut by_rater: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (rater, value) in all {
            by_rater.entry(rater).or_default().push(value);
        }
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let ratings = by_rater.into_iter().map(|(rater, values)| (rater, mean(values))).collect();
        Self { case, models, ratings }
    }
}

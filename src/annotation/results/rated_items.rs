//! What several raters rated: each item with the ratings of all raters.

use std::collections::BTreeMap;

use super::rated_tasks::rated_tasks;
use crate::annotation::journal::{Preference, RatingState, TaskStatus};
use crate::annotation::study::{Stage, StudyPlan};

/// Key of the preference among the targets.
const PREFERENCE: &str = "preference";

/// What is rated: a criterion, the final score, or the preference.
#[derive(Clone, Debug)]
pub(crate) struct RatedTarget {
    /// Key: that of a criterion, `final` or `preference`.
    pub(crate) key: String,
    /// Name in tables.
    pub(crate) name: String,
    /// True for the preference, whose values 1, 0 and −1 are the first, none and the second response.
    pub(crate) is_preference: bool,
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

/// Collects the submitted ratings of a study by target, in the order of the rubric.
pub(crate) fn rated_targets(plan: &StudyPlan, ratings: &RatingState) -> Vec<RatedTarget> {
    let mut items: BTreeMap<&str, ItemsByKey> = BTreeMap::new();
    for rated in rated_tasks(plan, ratings).filter(|r| r.state.status == TaskStatus::Submitted) {
        let index = plan.config.raters.iter().position(|rater| rater.name == rated.rater);
        let rater = index.unwrap_or_default() as u32;
        let case = &rated.task.case.id;
        let models: Vec<String> = rated.task.models().into_iter().map(str::to_owned).collect();
        let mut add = |target, models: &[String], value| {
            let key = (case.clone(), models.to_vec());
            items.entry(target).or_default().entry(key).or_default().push((rater, value));
        };
        for (target, scores) in &rated.state.answers.scores {
            for (model, score) in models.chunks(1).zip(scores) {
                if let Some(score) = score {
                    add(target.as_str(), model, f64::from(*score));
                }
            }
        }
        if let Some(preference) = rated.state.answers.preference {
            let value = match preference {
                Preference::First => 1.0,
                Preference::Second => -1.0,
                Preference::Equal => 0.0,
            };
            add(PREFERENCE, &models, value);
        }
    }
    let scored = plan.scored_targets().into_iter().map(|(target, name)| (target.key(), name));
    let mut names: Vec<(&str, &str)> = scored.collect();
    if plan.config.has_stage(Stage::Preference) {
        names.push((PREFERENCE, "Preference"));
    }
    let targets = names.into_iter().map(|(key, name)| RatedTarget {
        key: key.to_owned(),
        name: name.to_owned(),
        is_preference: key == PREFERENCE,
        items: items
            .remove(key)
            .unwrap_or_default()
            .into_iter()
            .map(|(key, all)| RatedItem::new(key, all))
            .collect(),
    });
    targets.collect()
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

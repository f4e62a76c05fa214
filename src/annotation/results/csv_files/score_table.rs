//! Scores: `case,model,rater,criterion,score`.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::annotation::journal::RatingState;
use crate::annotation::results::rated_tasks::{RatedTask, rated_tasks};
use crate::annotation::study::{Part, StudyPlan};
use crate::support::tables::Table;

/// Scores of a rater for a response on one criterion, in all tasks with the response.
type ScoresByKey<'a> = BTreeMap<(&'a str, &'a str, &'a str, &'a str), Vec<u8>>;

/// Writes the table. A response in several pairs has the mean of its scores.
pub(in crate::annotation::results) fn write(
    plan: &StudyPlan,
    ratings: &RatingState,
) -> Result<String> {
    let mut scores: ScoresByKey = BTreeMap::new();
    for rated in rated_tasks(plan, ratings, Part::Responses).filter(RatedTask::is_submitted) {
        for (key, values) in &rated.state.answers.scores {
            for (model, score) in rated.task.models().into_iter().zip(values) {
                if let Some(score) = score {
                    let key = (rated.task.case.id.as_str(), model, rated.rater, key.as_str());
                    scores.entry(key).or_default().push(*score);
                }
            }
        }
    }
    let mut table = Table::new(["case", "model", "rater", "criterion", "score"]);
    for ((case, model, rater, criterion), scores) in scores {
        let sum: u32 = scores.iter().map(|score| u32::from(*score)).sum();
        let mean = f64::from(sum) / scores.len() as f64;
        table.push_row([case, model, rater, criterion, &mean.to_string()]);
    }
    table.to_csv()
}

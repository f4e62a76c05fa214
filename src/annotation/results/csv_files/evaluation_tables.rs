//! What raters think of the evaluations of judges.

use anyhow::Result;

use crate::annotation::journal::{Preference, RatingState};
use crate::annotation::results::rated_tasks::{RatedTask, rated_tasks};
use crate::annotation::study::{EVALUATION_CRITERIA, Part, StudyPlan};
use crate::support::tables::Table;

/// Writes the scores of the evaluations of one judge.
pub(in crate::annotation::results) fn write_scores(
    plan: &StudyPlan,
    ratings: &RatingState,
) -> Result<String> {
    let columns = ["case", "model_a", "model_b", "rater", "judge", "criterion", "score"];
    let mut table = Table::new(columns);
    if let [judge] = plan.judges.as_slice() {
        for rated in rated_tasks(plan, ratings, Part::Evaluations).filter(RatedTask::is_submitted) {
            let [first, second] = rated.model_columns();
            for aspect in EVALUATION_CRITERIA {
                if let Some(score) = rated.state.answers.score(aspect.key, 0) {
                    let score = score.to_string();
                    let (case, judge) = (rated.task.case.id.as_str(), judge.judge.as_str());
                    table.push_row([case, first, second, rated.rater, judge, aspect.key, &score]);
                }
            }
        }
    }
    table.to_csv()
}

/// Writes the choices between the evaluations of two judges.
pub(in crate::annotation::results) fn write_preferences(
    plan: &StudyPlan,
    ratings: &RatingState,
) -> Result<String> {
    let columns = ["case", "model_a", "model_b", "rater", "judge_a", "judge_b", "preference"];
    let mut table = Table::new(columns);
    if let [judge_a, judge_b] = plan.judges.as_slice() {
        for rated in rated_tasks(plan, ratings, Part::Evaluations).filter(RatedTask::is_submitted) {
            let [first, second] = rated.model_columns();
            if let Some(preference) = rated.state.answers.preference.map(Preference::letter) {
                let (case, rater) = (rated.task.case.id.as_str(), rated.rater);
                let judges = [judge_a.judge.as_str(), judge_b.judge.as_str()];
                table.push_row([case, first, second, rater, judges[0], judges[1], preference]);
            }
        }
    }
    table.to_csv()
}

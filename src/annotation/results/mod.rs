//! The results of a study, in files that other commands read.

mod csv_files;
mod decision_file;
pub(crate) mod disagreement;
pub(crate) mod judge_ratings;
pub(crate) mod live_agreement;
pub(crate) mod rated_items;
mod rated_tasks;
pub(crate) mod rater_comments;
mod studio_export;
pub(crate) mod study_agreement;

use std::path::Path;

use anyhow::Result;

use self::csv_files::{
    adjudicated_tables, detail_table, evaluation_tables, preference_table, score_table,
};
use self::studio_export::{labeling_config, tasks_file};

use crate::annotation::journal::{AdjudicationEntry, RatingState};
use crate::annotation::study::StudyPlan;

/// A file of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultFile {
    /// Scores by case, model, rater and criterion, for `acem3 agree --labels`.
    Scores,
    /// Preferences by case, pair and rater, for `acem3 agree --labels`.
    Preferences,
    /// Scores that the administrator decided.
    AdjudicatedScores,
    /// Preferences that the administrator decided.
    AdjudicatedPreferences,
    /// Scores of the evaluations of a judge.
    EvaluationScores,
    /// Choices between the evaluations of two judges.
    EvaluationPreferences,
    /// Decisions about unresolved pairs, for `acem3 train introspect --decisions`.
    Decisions,
    /// Times, sides, comments and reasons.
    Details,
    /// All ratings as tasks with annotations of Label Studio.
    LabelStudioTasks,
    /// The labeling configuration of Label Studio for these tasks.
    LabelStudioConfig,
}

/// What the results are written from.
#[derive(Clone, Copy, Debug)]
pub struct StudyResults<'a> {
    /// The study.
    pub plan: &'a StudyPlan,
    /// What the raters entered.
    pub ratings: &'a RatingState,
    /// What the administrator decided, in order.
    pub decided: &'a [AdjudicationEntry],
    /// Folder of the cases, which the names of images are relative to.
    pub image_folder: &'a Path,
}

impl ResultFile {
    /// All files.
    pub const ALL: [Self; 10] = [
        Self::Scores,
        Self::Preferences,
        Self::AdjudicatedScores,
        Self::AdjudicatedPreferences,
        Self::EvaluationScores,
        Self::EvaluationPreferences,
        Self::Decisions,
        Self::Details,
        Self::LabelStudioTasks,
        Self::LabelStudioConfig,
    ];

    /// Returns the files of a study.
    pub fn of_study(plan: &StudyPlan) -> impl Iterator<Item = Self> + use<> {
        let (judges, is_decided) = (plan.judges.len(), plan.config.decides_pairs());
        let rates_responses = plan.config.rates_responses();
        Self::ALL.into_iter().filter(move |file| match file {
            Self::EvaluationScores => judges == 1,
            Self::EvaluationPreferences => judges == 2,
            Self::Decisions => is_decided,
            Self::Details => true,
            _ => !is_decided && rates_responses,
        })
    }

    /// Returns the name of the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scores => "scores.csv",
            Self::Preferences => "preferences.csv",
            Self::AdjudicatedScores => "adjudicated_scores.csv",
            Self::AdjudicatedPreferences => "adjudicated_preferences.csv",
            Self::EvaluationScores => "evaluation_scores.csv",
            Self::EvaluationPreferences => "evaluation_preferences.csv",
            Self::Decisions => "decisions.jsonl",
            Self::Details => "details.csv",
            Self::LabelStudioTasks => "label_studio.json",
            Self::LabelStudioConfig => "label_studio.xml",
        }
    }

    /// Returns what the file is for.
    pub fn description(self) -> &'static str {
        match self {
            Self::Scores => "scores of responses, for `acem3 agree --labels`",
            Self::Preferences => "preferences between responses, for `acem3 agree --labels`",
            Self::AdjudicatedScores => "scores that you decided after raters differed",
            Self::AdjudicatedPreferences => "preferences that you decided after raters differed",
            Self::EvaluationScores => "scores of the evaluations of a judge",
            Self::EvaluationPreferences => "choices between the evaluations of two judges",
            Self::Decisions => "decisions about pairs, for `acem3 train introspect --decisions`",
            Self::Details => "status, time, side, comment and reason of each case",
            Self::LabelStudioTasks => {
                "tasks and annotations for Label Studio and `acem3 agree --labels`"
            }
            Self::LabelStudioConfig => "labeling configuration of Label Studio for these tasks",
        }
    }

    /// Returns the media type of the file.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::LabelStudioTasks => "application/json",
            Self::Decisions => "application/x-ndjson",
            Self::LabelStudioConfig => "application/xml; charset=utf-8",
            _ => "text/csv; charset=utf-8",
        }
    }

    /// Returns the content. Only submitted answers are results; the details have all, and the
    /// tasks of Label Studio the skipped ones too.
    ///
    /// # Errors
    /// If the content cannot be written.
    pub fn content(self, results: &StudyResults) -> Result<String> {
        let StudyResults { plan, ratings, decided, image_folder } = *results;
        match self {
            Self::AdjudicatedScores => adjudicated_tables::write_scores(decided),
            Self::AdjudicatedPreferences => adjudicated_tables::write_preferences(decided),
            Self::Scores => score_table::write(plan, ratings),
            Self::Preferences => preference_table::write(plan, ratings),
            Self::EvaluationScores => evaluation_tables::write_scores(plan, ratings),
            Self::EvaluationPreferences => evaluation_tables::write_preferences(plan, ratings),
            Self::Decisions => Ok(decision_file::write(plan, ratings)),
            Self::Details => detail_table::write(plan, ratings),
            Self::LabelStudioTasks => tasks_file::write(plan, ratings, image_folder),
            Self::LabelStudioConfig => Ok(labeling_config::write(plan)),
        }
    }
}

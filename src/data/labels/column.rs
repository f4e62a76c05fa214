//! Recognises the columns of a label file by name.

use super::target::{ScoreTarget, normalize_name};

/// Content of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LabelColumn {
    /// The id of the case.
    Case,
    /// The model whose response the rater scored.
    Model,
    /// A model of a pair: 0 is the first, 1 the second.
    PairModel(usize),
    /// Name of the rater.
    Rater,
    /// The score target of the row.
    Target,
    /// A score or a preference.
    Value,
    /// The score of a response of a pair: 0 is the first, 1 the second.
    PairScore(usize),
    /// Scores or preferences for one score target.
    TargetRating(ScoreTarget),
    /// Scores or preferences of one rater.
    RaterRating(String),
    /// An unused column.
    Other,
}

/// Column names without case and punctuation, and their content.
const KNOWN_NAMES: [(&[&str], LabelColumn); 9] = [
    (&["case", "caseid", "id", "questionid", "qid", "item", "itemid"], LabelColumn::Case),
    (&["model", "modelid", "system"], LabelColumn::Model),
    (&["modela", "model1", "systema", "system1", "first"], LabelColumn::PairModel(0)),
    (&["modelb", "model2", "systemb", "system2", "second"], LabelColumn::PairModel(1)),
    (
        &["rater", "raterid", "annotator", "annotatorid", "reviewer", "doctor", "evaluator"],
        LabelColumn::Rater,
    ),
    (&["criterion", "aspect", "dimension", "target", "on"], LabelColumn::Target),
    (
        &[
            "score",
            "rating",
            "grade",
            "value",
            "label",
            "preference",
            "preferred",
            "winner",
            "vote",
            "choice",
            "better",
            "order",
        ],
        LabelColumn::Value,
    ),
    (&["scorea", "score1", "ratinga", "rating1"], LabelColumn::PairScore(0)),
    (&["scoreb", "score2", "ratingb", "rating2"], LabelColumn::PairScore(1)),
];

/// Prefixes of column names that contain the ratings of one rater.
const RATER_PREFIXES: [&str; 6] =
    ["rater", "annotator", "doctor", "reviewer", "evaluator", "physician"];

impl LabelColumn {
    /// Returns true for the name of a column of scores, which are not preferences. Columns of a
    /// criterion contain either.
    pub(super) fn is_score_name(name: &str) -> bool {
        ["score", "rating", "grade"].contains(&normalize_name(name).as_str())
    }

    /// Returns the content of a column with this name. `rater_columns` lists columns
    /// with the ratings of one rater each.
    pub(super) fn from_header(name: &str, rater_columns: &[String]) -> Self {
        if rater_columns.iter().any(|column| column == name) {
            return Self::RaterRating(name.to_owned());
        }
        let plain = normalize_name(name);
        let known = KNOWN_NAMES.iter().find(|(names, _)| names.contains(&plain.as_str()));
        if let Some((_, column)) = known {
            return column.clone();
        }
        if let Some(target) = ScoreTarget::parse_name(name) {
            return Self::TargetRating(target);
        }
        let one_rater = |start: &&str| {
            let rest = plain.strip_prefix(*start);
            rest.is_some_and(|rest| rest.chars().all(char::is_numeric) || rest.chars().count() == 1)
        };
        if RATER_PREFIXES.iter().any(one_rater) {
            return Self::RaterRating(name.to_owned());
        }
        Self::Other
    }
}

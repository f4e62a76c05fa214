//! What the columns of a label file hold, by their names.

use super::target::{ScoreTarget, plain};

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LabelColumn {
    /// The id of the case.
    Case,
    /// The model whose response is scored.
    Model,
    /// The first model of a pair, or the second.
    PairModel(usize),
    /// Who rated.
    Rater,
    /// The criterion, aspect or whole that the row is about.
    Target,
    /// A score, or a preference.
    Value,
    /// The score of the first response of a pair, or of the second.
    PairScore(usize),
    /// The scores, or preferences, on one target.
    Of(ScoreTarget),
    /// The scores, or preferences, of one rater.
    By(String),
    /// Nothing that is asked for here.
    Other,
}

/// Names of columns without punctuation, and what they hold.
const NAMES: [(&[&str], LabelColumn); 9] = [
    (
        &[
            "case",
            "caseid",
            "id",
            "questionid",
            "qid",
            "item",
            "itemid",
        ],
        LabelColumn::Case,
    ),
    (&["model", "modelid", "system"], LabelColumn::Model),
    (
        &["modela", "model1", "systema", "system1", "first"],
        LabelColumn::PairModel(0),
    ),
    (
        &["modelb", "model2", "systemb", "system2", "second"],
        LabelColumn::PairModel(1),
    ),
    (
        &[
            "rater",
            "raterid",
            "annotator",
            "annotatorid",
            "reviewer",
            "doctor",
            "evaluator",
        ],
        LabelColumn::Rater,
    ),
    (
        &["criterion", "aspect", "dimension", "target", "on"],
        LabelColumn::Target,
    ),
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
    (
        &["scorea", "score1", "ratinga", "rating1"],
        LabelColumn::PairScore(0),
    ),
    (
        &["scoreb", "score2", "ratingb", "rating2"],
        LabelColumn::PairScore(1),
    ),
];

/// How the names of columns begin that hold the ratings of one rater each.
const RATERS: [&str; 6] = [
    "rater",
    "annotator",
    "doctor",
    "reviewer",
    "evaluator",
    "physician",
];

impl LabelColumn {
    /// What a column of this name holds. `raters` names columns of one rater each.
    pub(super) fn named(name: &str, raters: &[String]) -> Self {
        if raters.iter().any(|rater| rater == name) {
            return Self::By(name.to_owned());
        }
        let plain = plain(name);
        let known = NAMES
            .iter()
            .find(|(names, _)| names.contains(&plain.as_str()));
        if let Some((_, column)) = known {
            return column.clone();
        }
        if let Some(target) = ScoreTarget::named(name) {
            return Self::Of(target);
        }
        let one_rater = |start: &&str| {
            let rest = plain.strip_prefix(*start);
            rest.is_some_and(|rest| rest.chars().all(char::is_numeric) || rest.chars().count() == 1)
        };
        if RATERS.iter().any(one_rater) {
            return Self::By(name.to_owned());
        }
        Self::Other
    }
}

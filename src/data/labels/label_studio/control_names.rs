//! Names of the controls and fields of a labeling configuration, and what a control with a name rates.

use std::cmp::Ordering;

use crate::data::labels::target::{ScoreTarget, normalize_name};
use crate::data::labels::vote::Vote;

/// Field of the image.
pub(crate) const IMAGE_FIELD: &str = "image";
/// Field of the question.
pub(crate) const QUESTION_FIELD: &str = "question";
/// Fields of the responses, in the order of the models of the task.
pub(crate) const RESPONSE_FIELDS: [&str; 2] = ["response_a", "response_b"];
/// Control of the preference.
pub(crate) const PREFERENCE_CONTROL: &str = "preference";
/// Choices of the preference: the first response, none and the second.
pub(crate) const PREFERENCE_CHOICES: [&str; 3] = ["Answer A", "Equal", "Answer B"];
/// Control of the comment.
pub(crate) const COMMENT_CONTROL: &str = "comment";
/// Control with the name of the rater.
pub(crate) const RATER_CONTROL: &str = "rater";

/// Other names of the preference, without case and punctuation.
const PREFERENCE_NAMES: [&str; 6] =
    ["preference", "preferred", "pairwise", "comparison", "winner", "better"];
/// Other names of the final score, without case and punctuation.
const FINAL_NAMES: [&str; 3] = ["score", "rating", "grade"];
/// Characters between the parts of a name.
const SEPARATORS: [char; 4] = ['-', '_', '.', ' '];

/// Returns the name of the control with the score of a response: 0 is the first, 1 the second.
pub(crate) fn score_control(target: &str, response: usize) -> String {
    format!("{target}-{}", if response == 0 { "a" } else { "b" })
}

/// What a control rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlSubject {
    /// A response.
    Score {
        /// Score target.
        target: ScoreTarget,
        /// The response, 0 or 1; `None` if the name does not say which.
        response: Option<usize>,
    },
    /// Which of two responses is better.
    Preference(ScoreTarget),
}

impl ControlSubject {
    /// Returns what the control with this name rates; `None` if the name is unknown.
    ///
    /// # Errors
    /// If the name has two meanings.
    pub(super) fn from_name(name: &str) -> Result<Option<Self>, String> {
        if let Some(own) = Self::from_exported_name(name) {
            return Ok(Some(own));
        }
        let is_preference = |name: &str| PREFERENCE_NAMES.contains(&normalize_name(name).as_str());
        if is_preference(name) {
            return Ok(Some(Self::Preference(ScoreTarget::Final)));
        }
        let whole = parse_target(name).map(|target| Self::Score { target, response: None });
        let parts = name.trim().rsplit_once(SEPARATORS);
        let split = parts.and_then(|(start, end)| {
            let target = parse_target(start)?;
            let response = parse_response(end).map(Some);
            let score = response.map(|response| Self::Score { target, response });
            score.or_else(|| is_preference(end).then_some(Self::Preference(target)))
        });
        match (whole, split) {
            (Some(_), Some(_)) => Err(format!(
                "the control `{name}` has two meanings\nhint: rename it to the key of a criterion with -a or -b"
            )),
            (whole, split) => Ok(whole.or(split)),
        }
    }

    /// Parses a name that [`score_control`] returns.
    fn from_exported_name(name: &str) -> Option<Self> {
        let (key, side) = name.rsplit_once('-')?;
        let response = ["a", "b"].iter().position(|known| *known == side)?;
        let target = ScoreTarget::all().find(|target| target.key() == key)?;
        Some(Self::Score { target, response: Some(response) })
    }
}

/// Returns the index of the response that a field name or the end of a control name means: 1 for
/// `response_b`, `answer 2` or `b`. `None` if the name means no response.
pub(super) fn parse_response(name: &str) -> Option<usize> {
    match Vote::position(name)? {
        Ordering::Greater => Some(0),
        Ordering::Equal => None,
        Ordering::Less => Some(1),
    }
}

fn parse_target(name: &str) -> Option<ScoreTarget> {
    let is_final = FINAL_NAMES.contains(&normalize_name(name).as_str());
    if is_final { Some(ScoreTarget::Final) } else { ScoreTarget::parse_name(name) }
}

/// Returns the hint for the name of a control that matches nothing.
pub(super) fn names_hint() -> String {
    let keys: Vec<&str> = ScoreTarget::all().map(ScoreTarget::key).collect();
    format!(
        "hint: expected `preference`, or a criterion with the response, such as `{}`; criteria: {}",
        score_control("factual_accuracy", 0),
        keys.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use acem3_experts::Criterion;

    use super::*;

    #[test]
    fn names_say_what_is_rated() {
        let accuracy = ScoreTarget::Criterion(Criterion::FACTUAL_ACCURACY);
        let score = |target, response| Ok(Some(ControlSubject::Score { target, response }));
        let parse = ControlSubject::from_name;
        for target in ScoreTarget::all() {
            for response in [0, 1] {
                let name = score_control(target.key(), response);
                assert_eq!(parse(&name), score(target, Some(response)), "{name}");
            }
        }
        assert_eq!(parse("Factual Accuracy"), score(accuracy, None));
        assert_eq!(parse("FA_2"), score(accuracy, Some(1)));
        assert_eq!(parse("rating"), score(ScoreTarget::Final, None));
        assert_eq!(parse("Preferred"), Ok(Some(ControlSubject::Preference(ScoreTarget::Final))));
        let preference = Ok(Some(ControlSubject::Preference(accuracy)));
        assert_eq!(parse("factual_accuracy-preference"), preference);
        for unknown in ["quality", "quality-a", "factual_accuracy-c", "", "-a", "tumour"] {
            assert_eq!(parse(unknown), Ok(None), "{unknown}");
        }
        assert!(names_hint().contains("`factual_accuracy-a`"));
    }

    #[test]
    fn a_name_with_two_meanings_is_rejected() {
        Criterion::from_key("vitamin").unwrap();
        Criterion::from_key("vitamin_a").unwrap();
        let own = ControlSubject::from_name("vitamin-a").unwrap().unwrap();
        assert!(matches!(own, ControlSubject::Score { target, .. } if target.key() == "vitamin"));
        let error = ControlSubject::from_name("vitamin_a").unwrap_err();
        assert!(error.contains("two meanings") && error.contains("hint:"), "{error}");
    }
}

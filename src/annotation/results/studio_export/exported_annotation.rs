//! The answers of a rater about a task as an annotation of Label Studio.

use serde::Serialize;
use serde_json::{Value, json};

use crate::annotation::journal::{Preference, TaskState, TaskStatus};
use crate::data::labels::label_studio::{
    COMMENT_CONTROL, PREFERENCE_CHOICES, PREFERENCE_CONTROL, QUESTION_FIELD, RATER_CONTROL,
    RESPONSE_FIELDS, score_control,
};

/// An annotation of Label Studio.
#[derive(Debug, Serialize)]
pub(super) struct ExportedAnnotation<'a> {
    id: usize,
    /// The account of the rater, if the rater's name is an e-mail address. Label Studio refuses a file
    /// with the name or number of an unknown account. Annotations without an account belong to the
    /// account that imports the file, so the control of the rater has the name too.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_by: Option<RaterAccount<'a>>,
    result: Vec<ControlResult>,
    /// True if the rater skipped the task.
    was_cancelled: bool,
    /// False: Label Studio takes imported annotations for the truth otherwise.
    ground_truth: bool,
    created_at: &'a str,
    updated_at: &'a str,
    /// Seconds on the page.
    lead_time: f64,
}

/// An account of Label Studio.
#[derive(Debug, Serialize)]
struct RaterAccount<'a> {
    email: &'a str,
}

/// What a rater entered in a control.
#[derive(Debug, Serialize)]
struct ControlResult {
    id: String,
    from_name: String,
    to_name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    value: Value,
}

impl<'a> ExportedAnnotation<'a> {
    /// Converts the answers of a rater. `is_swapped`: true if the task shows the second response of the
    /// case first.
    pub(super) fn new(id: usize, rater: &'a str, state: &'a TaskState, is_swapped: bool) -> Self {
        let was_cancelled = state.status == TaskStatus::Skipped;
        let mut controls = AnnotationControls { annotation: id, results: Vec::new() };
        if was_cancelled {
            controls.add_text(COMMENT_CONTROL, &state.answers.reason);
        } else {
            controls.add_answers(state, is_swapped);
        }
        controls.add_text(RATER_CONTROL, rater);
        Self {
            id,
            completed_by: is_email(rater).then_some(RaterAccount { email: rater }),
            result: controls.results,
            was_cancelled,
            ground_truth: false,
            created_at: &state.time,
            updated_at: &state.time,
            lead_time: state.seconds,
        }
    }
}

/// The results of one annotation.
struct AnnotationControls {
    annotation: usize,
    results: Vec<ControlResult>,
}

impl AnnotationControls {
    fn add_answers(&mut self, state: &TaskState, is_swapped: bool) {
        let answers = if is_swapped { state.answers.exchanged() } else { state.answers.clone() };
        for (target, scores) in &answers.scores {
            for ((i, field), score) in RESPONSE_FIELDS.into_iter().enumerate().zip(scores) {
                if let Some(score) = score {
                    let control = score_control(target, i);
                    self.add(control, field, "choices", json!({ "choices": [score.to_string()] }));
                }
            }
        }
        if let Some(preference) = answers.preference {
            let choice = match preference {
                Preference::First => PREFERENCE_CHOICES[0],
                Preference::Equal => PREFERENCE_CHOICES[1],
                Preference::Second => PREFERENCE_CHOICES[2],
            };
            let control = PREFERENCE_CONTROL.to_owned();
            self.add(control, QUESTION_FIELD, "choices", json!({ "choices": [choice] }));
        }
        self.add_text(COMMENT_CONTROL, &answers.comment);
    }

    /// Adds a text, unless it is empty.
    fn add_text(&mut self, control: &str, text: &str) {
        if !text.is_empty() {
            self.add(control.to_owned(), QUESTION_FIELD, "textarea", json!({ "text": [text] }));
        }
    }

    fn add(&mut self, from_name: String, to_name: &'static str, kind: &'static str, value: Value) {
        let id = format!("{}-{from_name}", self.annotation);
        self.results.push(ControlResult { id, from_name, to_name, kind, value });
    }
}

/// Returns true if a name has the form of an e-mail address.
fn is_email(name: &str) -> bool {
    name.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && host.contains('.') && !host.contains('@') && !name.contains(' ')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::journal::TaskAnswers;

    fn state(status: TaskStatus) -> TaskState {
        let mut answers = TaskAnswers {
            preference: Some(Preference::First),
            comment: "a comment".into(),
            reason: "blurred".into(),
            ..TaskAnswers::default()
        };
        answers.set_score("final", 0, 2, 0);
        answers.set_score("final", 1, 2, 5);
        TaskState { status, answers, seconds: 2.5, time: "2026-01-02T03:04:05Z".into() }
    }

    fn controls(annotation: &ExportedAnnotation) -> Vec<(String, String)> {
        let text = |result: &ControlResult| {
            let list = result.value.as_object().unwrap().values().next().unwrap();
            (result.from_name.clone(), list[0].as_str().unwrap().to_owned())
        };
        annotation.result.iter().map(text).collect()
    }

    #[test]
    fn answers_follow_the_shown_order() {
        let state = state(TaskStatus::Submitted);
        let shown =
            |is_swapped| controls(&ExportedAnnotation::new(1, "dr-lee", &state, is_swapped));
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let rest = [pair("comment", "a comment"), pair("rater", "dr-lee")];
        let scores = [pair("final-a", "0"), pair("final-b", "5"), pair("preference", "Answer A")];
        assert_eq!(shown(false), [&scores[..], &rest].concat());
        let scores = [pair("final-a", "5"), pair("final-b", "0"), pair("preference", "Answer B")];
        assert_eq!(shown(true), [&scores[..], &rest].concat());
    }

    #[test]
    fn skipped_tasks_are_cancelled_with_the_reason() {
        let state = state(TaskStatus::Skipped);
        let skipped = ExportedAnnotation::new(1, "ito@clinic.example", &state, false);
        assert!(skipped.was_cancelled && !skipped.ground_truth);
        assert_eq!(skipped.completed_by.as_ref().unwrap().email, "ito@clinic.example");
        assert_eq!(controls(&skipped)[0].1, "blurred");
        let named = ExportedAnnotation::new(1, "dr@lee", &state, false);
        assert!(named.completed_by.is_none());
    }
}

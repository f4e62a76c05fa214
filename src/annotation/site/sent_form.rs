//! A form that a rater sends about a task: it is stored, and the next page follows.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::SystemTime;

use acem3_conclusion::compare_scores;
use anyhow::Error;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Redirect, Response};

use super::requested_task::describe_task;
use super::responses::{message, print_failure, print_unsaved};
use super::site_state::{SentAnswers, SiteState};
use super::submitted_form::SubmittedForm;
use crate::annotation::journal::{DecisionAnswer, EntryAction, TaskAnswers, TaskPlace};
use crate::annotation::pages::field_names::PAGE;
use crate::annotation::pages::image_view::chosen_window;
use crate::annotation::study::{FINAL_SCORE, RatingScheme};
use crate::data::labels::ScoreTarget;
use crate::support::digest::Digest;
use crate::support::terminal::clock::unix_seconds;
use crate::training::introspection::decisions::decision_line::numbered_response;

/// What a page shows besides the task and the stored answers.
#[derive(Clone, Copy)]
pub(super) struct ShownForm<'a> {
    /// Center and width of a DICOM image.
    pub(super) window: Option<[f64; 2]>,
    /// Number of the suggestion that fills an own evaluation.
    pub(super) prefilled: Option<usize>,
    /// What is missing.
    pub(super) missing: &'a [String],
    /// What just happened.
    pub(super) notice: &'a str,
}

/// A form about a task, with what belongs to its part of the study.
pub(super) struct SentForm<'a> {
    /// Where the answers belong.
    pub(super) place: TaskPlace,
    /// The fields of the part.
    pub(super) scheme: RatingScheme<'a>,
    /// True if the rater saw the second text first.
    pub(super) is_swapped: bool,
    /// Names and values.
    pub(super) fields: &'a [(String, String)],
    /// Address of the pages of the part, without the number.
    pub(super) path: &'static str,
}

impl SentForm<'_> {
    /// Stores the answers and returns the next page. `page` renders the page of the task. The answer is
    /// sent after the entries are on disk.
    pub(super) async fn store(
        self,
        site: &Arc<SiteState>,
        page: impl Fn(&ShownForm) -> String,
    ) -> Response {
        let field = |name: &str| field_value(self.fields, name);
        // The browser has one cookie, so a page that was opened with another link may still be open.
        if field(PAGE).is_some_and(|key| key != site.page_key(self.place)) {
            let text = "This page was opened with another link, so nothing is saved. Open your own link again, and enter your answers there.";
            return message(site, StatusCode::CONFLICT, "Not saved", text);
        }
        let window = chosen_window(field);
        let now = unix_seconds(SystemTime::now());
        let form = SubmittedForm::new(&self.scheme, self.fields, now);
        let mut missing = form.missing(&self.scheme);
        if missing.is_empty() && form.is_submission() {
            missing.extend(site.decision_problem(self.place, &form.answers));
        }
        let action = form.action(missing.is_empty());
        let answers = if self.is_swapped { form.answers.exchanged() } else { form.answers };
        let (place, recording) = (self.place, Arc::clone(site));
        let sent = SentAnswers { action, answers, seconds: form.seconds };
        // The write waits for the disk, so it has a thread of its own.
        let stored = tokio::task::spawn_blocking(move || recording.record(place, sent)).await;
        let is_stored = match stored.map_err(Error::from).flatten() {
            Ok(is_stored) => is_stored,
            Err(error) => {
                print_unsaved(&describe_task(site, self.place.rater, self.place.place), &error);
                let text = "Your entries could not be saved. Go back and try again, and tell the administrator.";
                return message(site, StatusCode::INTERNAL_SERVER_ERROR, "Not saved", text);
            }
        };
        if !is_stored {
            let text = "The case is final, so its answers cannot change.";
            return message(site, StatusCode::CONFLICT, "Not changed", text);
        }
        if !missing.is_empty() {
            let shown = ShownForm {
                window,
                prefilled: None,
                missing: &missing,
                notice: "Saved as a draft.",
            };
            return (StatusCode::UNPROCESSABLE_ENTITY, Html(page(&shown))).into_response();
        }
        if action == EntryAction::Save {
            let shown = ShownForm { window, prefilled: None, missing: &[], notice: "Saved." };
            return Html(page(&shown)).into_response();
        }
        let places = site.places(place.part, place.rater);
        let next = site.read_ratings(|ratings| {
            ratings.next_open(place.part, place.rater, &places, Some(place.place))
        });
        let next =
            next.map_or_else(|| "/".to_owned(), |next| format!("{}/{}", self.path, next + 1));
        Redirect::to(&next).into_response()
    }
}

/// Returns the value of a field of a form; the last one if the field is repeated.
pub(super) fn field_value<'f>(fields: &'f [(String, String)], name: &str) -> Option<&'f str> {
    fields.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

impl SiteState {
    /// Returns which rater and task a form belongs to.
    pub(super) fn page_key(&self, place: TaskPlace) -> String {
        let rater = self.plan.config.raters.get(place.rater).map_or("", |rater| &rater.name);
        let task = self.plan.assigned(place.rater, place.place).map(|(assigned, _)| assigned.task);
        let text = format!("{}\0{rater}\0{}\0{task:?}", self.plan.config.name, place.part.name());
        Digest::sha256(text.as_bytes()).short_hex()
    }

    /// Returns what is wrong with a decision about an unresolved pair; `None` if nothing is.
    fn decision_problem(&self, place: TaskPlace, answers: &TaskAnswers) -> Option<String> {
        let (assigned, task) = self.plan.assigned(place.rater, place.place)?;
        let pair = self.plan.unresolved.get(assigned.task)?;
        let Some(labels) = task.labels() else {
            return Some(
                "The case has no known final scores, so a judge cannot learn it.".to_owned(),
            );
        };
        let error = pair.check(answers.decision_value(""), labels, &self.plan.rubric).err()?;
        if let Some(DecisionAnswer::Accept(number)) = answers.decision {
            return Some(format!(
                "Suggestion {number} does not fit the known final scores. Choose another one, or write \
                 your own evaluation."
            ));
        }
        if let Some(DecisionAnswer::Own(analyses)) = &answers.decision
            && let Some(name) = analyses.values().flatten().find_map(|text| numbered_response(text))
        {
            return Some(format!(
                "Write “this answer” or “the other answer” instead of “{name}”: the texts are used with the \
                 answers in both orders."
            ));
        }
        let scores = [0, 1].map(|i| answers.score(ScoreTarget::Final.key(), i).map(f64::from));
        let own = scores[0].zip(scores[1]).map(<[f64; 2]>::from);
        if own.is_some_and(|own| compare_scores(own) != compare_scores(labels)) {
            return Some(format!(
                "{FINAL_SCORE}: by the known final scores, {}. Give final scores in this order, or none.",
                describe_labels(labels)
            ));
        }
        print_failure(
            &format!("{}: decision", describe_task(self, place.rater, place.place)),
            &error,
        );
        Some("The evaluation cannot be used. Please tell the administrator.".to_owned())
    }
}

/// Returns the order of the known final scores in words.
fn describe_labels(labels: [f64; 2]) -> &'static str {
    match compare_scores(labels) {
        Ordering::Greater => "answer A is better",
        Ordering::Equal => "both answers are equally good",
        Ordering::Less => "answer B is better",
    }
}

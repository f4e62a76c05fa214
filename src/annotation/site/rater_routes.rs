//! Handlers of the requests of raters: show cases and images, and store answers.

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Error;
use axum::extract::{Form, Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::access::Visitor;
use super::png_images::RequestedImage;
use super::responses::{denied, message, print_failure, print_unsaved, visitor};
use super::site_state::{SentAnswers, SiteState};
use super::submitted_form::SubmittedForm;
use crate::annotation::journal::{EntryAction, TaskPlace};
use crate::annotation::pages::case_page::{CaseImage, CasePage};
use crate::annotation::pages::overview_page::Overview;
use crate::annotation::study::{AssignedTask, Task};
use crate::support::terminal::clock::unix_seconds;

/// Window of a DICOM image in the address.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct WindowQuery {
    center: Option<f64>,
    width: Option<f64>,
}

impl WindowQuery {
    fn window(self) -> Option<[f64; 2]> {
        let window = [self.center?, self.width?];
        window.iter().all(|value| value.is_finite()).then_some(window)
    }
}

/// A case that a rater asks for.
struct RequestedCase<'a> {
    place: TaskPlace,
    assigned: AssignedTask,
    task: &'a Task,
}

/// Returns the start page of a rater.
pub(super) fn overview(site: &SiteState, rater: usize) -> String {
    let config = &site.plan.config;
    site.read_ratings(|ratings| {
        let overview = Overview {
            study: &config.name,
            instructions: &config.instructions,
            tasks: ratings.of_rater(rater),
            next: ratings.next_open(rater, None),
        };
        overview.render()
    })
}

/// Shows a case.
pub(super) async fn show_case(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    Query(window): Query<WindowQuery>,
    headers: HeaderMap,
) -> Response {
    let case = match requested_case(&site, &number, &headers) {
        Ok(case) => case,
        Err(response) => return response,
    };
    let shown = ShownCase { window: window.window(), missing: &[], notice: "" };
    Html(case_page(&site, &case, &shown)).into_response()
}

/// Stores the answers of a form. The page that says so is sent after they are on disk.
pub(super) async fn submit_case(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    headers: HeaderMap,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let case = match requested_case(&site, &number, &headers) {
        Ok(case) => case,
        Err(response) => return response,
    };
    let responses = case.task.responses.len();
    let now = unix_seconds(SystemTime::now());
    let form = SubmittedForm::new(&site.plan, responses, &fields, now);
    let missing = form.missing(&site.plan, responses);
    let action = form.action(missing.is_empty());
    let answers = if case.assigned.is_swapped { form.answers.exchanged() } else { form.answers };
    let place = case.place;
    let sent = SentAnswers { action, answers, seconds: form.seconds };
    let recording = Arc::clone(&site);
    // The write waits for the disk, so it has a thread of its own.
    let stored = tokio::task::spawn_blocking(move || recording.record(place, sent)).await;
    let stored = stored.map_err(Error::from).flatten();
    if let Err(error) = &stored {
        print_unsaved(&describe_place(&site, place), error);
        let text =
            "Your entries could not be saved. Go back and try again, and tell the administrator.";
        return message(&site, StatusCode::INTERNAL_SERVER_ERROR, "Not saved", text);
    }
    if let Ok(false) = stored {
        let text = "The case was submitted before, so its answers cannot change.";
        return message(&site, StatusCode::CONFLICT, "Already submitted", text);
    }
    if !missing.is_empty() {
        let shown = ShownCase { window: None, missing: &missing, notice: "Saved as a draft." };
        let page = Html(case_page(&site, &case, &shown));
        return (StatusCode::UNPROCESSABLE_ENTITY, page).into_response();
    }
    if action == EntryAction::Save {
        let shown = ShownCase { window: None, missing: &[], notice: "Saved." };
        return Html(case_page(&site, &case, &shown)).into_response();
    }
    let next = site.read_ratings(|ratings| ratings.next_open(place.rater, Some(place.place)));
    let next = next.map_or_else(|| "/".to_owned(), |next| format!("/case/{}", next + 1));
    Redirect::to(&next).into_response()
}

/// Sends the image of a case, without anything else of its file.
pub(super) async fn show_image(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    Query(window): Query<WindowQuery>,
    headers: HeaderMap,
) -> Response {
    let (place, source) = match requested_case(&site, &number, &headers) {
        Ok(case) => (case.place, case.task.case.image.clone()),
        Err(response) => return response,
    };
    let Some(source) = source else {
        return message(&site, StatusCode::NOT_FOUND, "No image", "The case has no image.");
    };
    match site.images.png(RequestedImage { source, window: window.window() }).await {
        Ok(png) => ([(CONTENT_TYPE, "image/png")], png).into_response(),
        Err(error) => {
            print_failure(&format!("{}: no image", describe_place(&site, place)), &error);
            let text = "The image cannot be shown. Please tell the administrator.";
            message(&site, StatusCode::INTERNAL_SERVER_ERROR, "No image", text)
        }
    }
}

/// Returns the rater and the number of a case, for messages on the terminal.
fn describe_place(site: &SiteState, place: TaskPlace) -> String {
    let rater = site.plan.config.raters.get(place.rater).map_or("", |rater| &rater.name);
    format!("{rater}, case {}", place.place + 1)
}

/// Returns the case that a rater asks for, or the answer to everybody else.
#[expect(clippy::result_large_err, reason = "the error is the response, which is sent at once")]
fn requested_case<'a>(
    site: &'a SiteState,
    number: &str,
    headers: &HeaderMap,
) -> Result<RequestedCase<'a>, Response> {
    let Some(Visitor::Rater(rater)) = visitor(site, headers) else {
        return Err(denied(site));
    };
    let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let case = place.and_then(|place| {
        let (assigned, task) = site.plan.assigned(rater, place)?;
        Some(RequestedCase { place: TaskPlace { rater, place }, assigned, task })
    });
    case.ok_or_else(|| {
        message(site, StatusCode::NOT_FOUND, "No such case", "You have no case with this number.")
    })
}

/// What a page of a case shows besides the case.
struct ShownCase<'a> {
    window: Option<[f64; 2]>,
    missing: &'a [String],
    notice: &'a str,
}

fn case_page(site: &SiteState, case: &RequestedCase, shown: &ShownCase) -> String {
    let state = site.read_ratings(|ratings| ratings.get(case.place).cloned());
    let mut state = state.unwrap_or_default();
    let mut responses = case.task.texts();
    if case.assigned.is_swapped {
        responses.reverse();
        state.answers = state.answers.exchanged();
    }
    let image =
        case.task.case.image.as_ref().map(|source| CaseImage {
            is_dicom: site.images.is_dicom(source),
            window: shown.window,
        });
    CasePage {
        plan: &site.plan,
        place: case.place.place,
        count: site.plan.assignment.get(case.place.rater).map_or(0, Vec::len),
        question: &case.task.case.question,
        responses: &responses,
        image,
        state: &state,
        missing: shown.missing,
        notice: shown.notice,
        opened: unix_seconds(SystemTime::now()),
    }
    .render()
}

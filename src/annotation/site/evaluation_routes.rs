//! Handlers of the requests of raters about the evaluations of judges, after their own ratings are
//! final.

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Error;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Redirect, Response};

use super::access::Visitor;
use super::image_page::ImagePage;
use super::requested_task::{CaseQuery, RequestedTask, requested_task};
use super::responses::{denied, message, print_unsaved, visitor};
use super::sent_form::{SentForm, ShownForm};
use super::site_state::{SentAnswers, SiteState};
use crate::annotation::journal::{EntryAction, TaskAnswers, TaskPlace, TaskStatus};
use crate::annotation::pages::case_page::{CasePage, PagePosition};
use crate::annotation::pages::evaluation_fields::EvaluationFields;
use crate::annotation::study::Part;
use crate::support::terminal::clock::unix_seconds;

/// Address of the pages of evaluations, without the number.
const PATH: &str = "/evaluation";

/// Makes the ratings of responses final, and goes to the first evaluation.
pub(super) async fn open(State(site): State<Arc<SiteState>>, headers: HeaderMap) -> Response {
    let Some(Visitor::Rater(rater)) = visitor(&site, &headers) else {
        return denied(&site);
    };
    let Some(first) = site.places(Part::Evaluations, rater).first().copied() else {
        return not_open(&site);
    };
    let next = Redirect::to(&format!("{PATH}/{}", first + 1)).into_response();
    if site.read_ratings(|ratings| ratings.has_opened_evaluations(rater)) {
        return next;
    }
    let place = TaskPlace { part: Part::Evaluations, rater, place: first };
    let sent =
        SentAnswers { action: EntryAction::Open, answers: TaskAnswers::default(), seconds: 0.0 };
    let recording = Arc::clone(&site);
    let stored = tokio::task::spawn_blocking(move || recording.record(place, sent)).await;
    match stored.map_err(Error::from).flatten() {
        Ok(true) => next,
        Ok(false) => not_open(&site),
        Err(error) => {
            let rater = site.plan.config.raters.get(rater).map_or("", |rater| &rater.name);
            print_unsaved(&format!("{rater}, start of the evaluations"), &error);
            let text =
                "The start could not be saved. Go back and try again, and tell the administrator.";
            message(&site, StatusCode::INTERNAL_SERVER_ERROR, "Not saved", text)
        }
    }
}

/// Shows the evaluations of a task.
pub(super) async fn show(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    Query(query): Query<CaseQuery>,
    headers: HeaderMap,
) -> Response {
    let case = match visible_task(&site, &number, &headers) {
        Ok(case) => case,
        Err(response) => return response,
    };
    let shown = ShownForm { window: query.window(), prefilled: None, missing: &[], notice: "" };
    Html(evaluation_page(&site, &case, &shown)).into_response()
}

/// Stores the answers of a form.
pub(super) async fn submit(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    headers: HeaderMap,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let case = match visible_task(&site, &number, &headers) {
        Ok(case) => case,
        Err(response) => return response,
    };
    let form = SentForm {
        place: TaskPlace { part: Part::Evaluations, rater: case.rater, place: case.place },
        scheme: site.plan.scheme(Part::Evaluations, case.task.responses.len()),
        is_swapped: case.assigned.is_judge_swapped,
        fields: &fields,
        path: PATH,
    };
    form.store(&site, |shown| evaluation_page(&site, &case, shown)).await
}

/// Returns the task of evaluations that a rater may see, or the answer to everybody else.
#[expect(clippy::result_large_err, reason = "the error is the response, which is sent at once")]
fn visible_task<'a>(
    site: &'a SiteState,
    number: &str,
    headers: &HeaderMap,
) -> Result<RequestedTask<'a>, Response> {
    let case = requested_task(site, number, headers)?;
    let is_opened = site.read_ratings(|ratings| ratings.has_opened_evaluations(case.rater));
    if is_opened && site.places(Part::Evaluations, case.rater).contains(&case.place) {
        return Ok(case);
    }
    Err(not_open(site))
}

fn not_open(site: &SiteState) -> Response {
    let text = "Evaluations of judges open after you have submitted or skipped all cases. There is none of a skipped case.";
    message(site, StatusCode::FORBIDDEN, "Not open yet", text)
}

fn evaluation_page(site: &SiteState, case: &RequestedTask, shown: &ShownForm) -> String {
    let place = TaskPlace { part: Part::Evaluations, rater: case.rater, place: case.place };
    let state = site.read_ratings(|ratings| ratings.get(place).cloned());
    let mut state = state.unwrap_or_default();
    let mut evaluations = site.plan.evaluations(case.assigned.task).unwrap_or_default();
    let mut responses = case.task.texts();
    if case.assigned.is_swapped {
        responses.reverse();
    }
    if case.assigned.is_judge_swapped {
        evaluations.reverse();
        state.answers = state.answers.exchanged();
    }
    let scheme = site.plan.scheme(Part::Evaluations, responses.len());
    let shown_evaluations = EvaluationFields {
        rubric: &site.plan.rubric,
        scheme: &scheme,
        evaluations: &evaluations,
        is_swapped: case.assigned.is_swapped,
        answers: &state.answers,
    };
    let places = site.places(Part::Evaluations, case.rater);
    let number = case.place + 1;
    let is_final = state.status == TaskStatus::Submitted;
    let image = ImagePage {
        image: format!("/case/{number}/image"),
        page: format!("{PATH}/{number}"),
        is_open: !is_final,
    };
    CasePage {
        study: &site.plan.config.name,
        instructions: &site.plan.config.instructions,
        position: PagePosition {
            name: "Evaluation",
            path: PATH,
            places: &places,
            place: case.place,
        },
        question: &case.task.case.question,
        responses: &responses,
        image: image.view(site, case.task, shown.window),
        details: shown_evaluations.texts(),
        fields: shown_evaluations.fields(),
        state: &state,
        is_final,
        missing: shown.missing,
        notice: shown.notice,
        opened: unix_seconds(SystemTime::now()),
        page: &site.page_key(place),
    }
    .render()
}

//! Handlers of the requests of raters about responses: show cases and images, and store answers.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use maud::html;

use super::image_page::ImagePage;
use super::image_response::CaseImage;
use super::requested_task::{CaseQuery, RequestedTask, requested_task};
use super::responses::message;
use super::sent_form::{SentForm, ShownForm};
use super::site_state::SiteState;
use crate::annotation::journal::{TaskPlace, TaskStatus};
use crate::annotation::pages::case_page::{CasePage, PagePosition};
use crate::annotation::pages::decision_fields::DecisionFields;
use crate::annotation::pages::overview_page::{EvaluationOverview, Overview};
use crate::annotation::pages::rating_fields::RatingFields;
use crate::annotation::study::Part;
use crate::support::terminal::clock::unix_seconds;

/// Address of the pages of responses, without the number.
const PATH: &str = "/case";

/// Returns the start page of a rater.
pub(super) fn overview(site: &SiteState, rater: usize) -> String {
    let config = &site.plan.config;
    let places = Part::ALL.map(|part| site.places(part, rater));
    site.read_ratings(|ratings| {
        let [responses, evaluations] = &places;
        let overview = Overview {
            study: &config.name,
            instructions: &config.instructions,
            tasks: ratings.of_rater(Part::Responses, rater),
            places: responses,
            next: ratings.next_open(Part::Responses, rater, responses, None),
            evaluations: (!config.evaluations.is_empty()).then(|| EvaluationOverview {
                tasks: ratings.of_rater(Part::Evaluations, rater),
                places: evaluations,
                is_opened: ratings.has_opened_evaluations(rater),
                locks_ratings: config.rates_responses(),
                next: ratings.next_open(Part::Evaluations, rater, evaluations, None),
            }),
        };
        overview.render()
    })
}

/// Shows a case.
pub(super) async fn show_case(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    Query(query): Query<CaseQuery>,
    headers: HeaderMap,
) -> Response {
    let case = match requested_task(&site, &number, &headers) {
        Ok(case) => case,
        Err(response) => return response,
    };
    if !site.plan.config.rates_responses() {
        let text = "This study is about evaluations only.";
        return message(&site, StatusCode::NOT_FOUND, "No such page", text);
    }
    let (window, prefilled) = (query.window(), query.from);
    let shown = ShownForm { window, prefilled, missing: &[], notice: "" };
    Html(case_page(&site, &case, &shown)).into_response()
}

/// Stores the answers of a form.
pub(super) async fn submit_case(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    headers: HeaderMap,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let case = match requested_task(&site, &number, &headers) {
        Ok(case) => case,
        Err(response) => return response,
    };
    let form = SentForm {
        place: TaskPlace { part: Part::Responses, rater: case.rater, place: case.place },
        scheme: site.plan.scheme(Part::Responses, case.task.responses.len()),
        is_swapped: case.assigned.is_swapped,
        fields: &fields,
        path: PATH,
    };
    form.store(&site, |shown| case_page(&site, &case, shown)).await
}

/// Sends the image of a case, without anything else of its file.
pub(super) async fn show_image(
    State(site): State<Arc<SiteState>>,
    Path(number): Path<String>,
    Query(query): Query<CaseQuery>,
    headers: HeaderMap,
) -> Response {
    let case = match requested_task(&site, &number, &headers) {
        Ok(case) => case,
        Err(response) => return response,
    };
    let (source, window) = (case.task.case.image.clone(), query.window());
    CaseImage { source, window, request: case.describe(&site) }.send(&site).await
}

fn case_page(site: &SiteState, case: &RequestedTask, shown: &ShownForm) -> String {
    let place = TaskPlace { part: Part::Responses, rater: case.rater, place: case.place };
    let (state, is_opened) = site.read_ratings(|ratings| {
        (ratings.get(place).cloned(), ratings.has_opened_evaluations(case.rater))
    });
    let mut state = state.unwrap_or_default();
    let mut responses = case.task.texts();
    if case.assigned.is_swapped {
        responses.reverse();
        state.answers = state.answers.exchanged();
    }
    let (details, fields) = if let Some(pair) = site.plan.unresolved.get(case.assigned.task) {
        let fields = DecisionFields {
            plan: &site.plan,
            pair,
            labels: case.task.labels(),
            address: format!("{PATH}/{}", case.place + 1),
            prefilled: shown.prefilled.filter(|_| state.status != TaskStatus::Submitted),
            answers: &state.answers,
        };
        (fields.suggestions(), fields.fields())
    } else {
        let fields = RatingFields {
            plan: &site.plan,
            answers: &state.answers,
            responses: responses.len(),
            has_image: case.task.case.image.is_some(),
        };
        (html! {}, fields.render())
    };
    let places = site.places(Part::Responses, case.rater);
    let is_final = is_opened || state.status == TaskStatus::Submitted;
    let page = format!("{PATH}/{}", case.place + 1);
    let image = ImagePage { image: format!("{page}/image"), page, is_open: !is_final };
    CasePage {
        study: &site.plan.config.name,
        instructions: &site.plan.config.instructions,
        position: PagePosition { name: "Case", path: PATH, places: &places, place: case.place },
        question: &case.task.case.question,
        responses: &responses,
        image: image.view(site, case.task, shown.window),
        details,
        fields,
        state: &state,
        is_final,
        missing: shown.missing,
        notice: shown.notice,
        opened: unix_seconds(SystemTime::now()),
        page: &site.page_key(place),
    }
    .render()
}

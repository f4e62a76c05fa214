//! Handlers of requests about disagreements, which the administrator decides.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Error;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use tokio::task::block_in_place;

use super::access::Visitor;
use super::image_page::ImagePage;
use super::image_response::CaseImage;
use super::requested_task::CaseQuery;
use super::responses::{denied, message, print_unsaved, visitor};
use super::sent_form::field_value;
use super::site_state::SiteState;
use crate::annotation::journal::{AdjudicationEntry, SCHEMA};
use crate::annotation::pages::disagreement_page::{
    AdjudicatedResponse, DisagreementPage, PATH, VALUE, disagreement_list,
};
use crate::annotation::pages::field_names::{COMMENT, limit_text};
use crate::annotation::results::disagreement::{Disagreement, disagreements};
use crate::annotation::results::rated_items::rated_targets;
use crate::annotation::results::rater_comments::rater_comments;
use crate::annotation::study::Task;
use crate::data::cases::Case;
use crate::support::terminal::clock::format_rfc3339;

/// Lists all disagreements.
pub(super) async fn list(State(site): State<Arc<SiteState>>, headers: HeaderMap) -> Response {
    if visitor(&site, &headers) != Some(Visitor::Administrator) {
        return denied(&site);
    }
    let all = block_in_place(|| all_disagreements(&site));
    Html(disagreement_list(&site.plan.config.name, &all)).into_response()
}

/// Shows a disagreement.
pub(super) async fn show(
    State(site): State<Arc<SiteState>>,
    Path(id): Path<String>,
    Query(query): Query<CaseQuery>,
    headers: HeaderMap,
) -> Response {
    let (disagreement, task) = match requested(&site, &id, &headers) {
        Ok(requested) => requested,
        Err(response) => return response,
    };
    let mut responses: Vec<AdjudicatedResponse> = disagreement
        .item
        .models
        .iter()
        .map(|model| adjudicated_response(&task.case, model))
        .collect();
    if disagreement.is_swapped {
        responses.reverse();
    }
    let criterion = site.plan.rubric.criteria().find(|c| c.key.key() == disagreement.target);
    let has_image = task.case.image.is_some();
    let criterion = criterion.and_then(|criterion| criterion.fitted(has_image).ok());
    let comments =
        site.read_ratings(|ratings| rater_comments(&site.plan, ratings, &disagreement.item));
    let page = format!("{PATH}{}", disagreement.id);
    let image = ImagePage { image: format!("{page}/image"), page, is_open: false };
    let page = DisagreementPage {
        study: &site.plan.config.name,
        disagreement: &disagreement,
        criterion: criterion.as_ref(),
        question: &task.case.question,
        responses: &responses,
        comments: &comments,
        image: image.view(&site, task, query.window()),
        scores: site.plan.rubric.scores,
    };
    Html(page.render()).into_response()
}

fn adjudicated_response<'a>(case: &'a Case, model: &'a str) -> AdjudicatedResponse<'a> {
    let response = case.responses.iter().find(|response| response.model == model);
    AdjudicatedResponse { model, text: response.map_or("", |response| response.text.as_str()) }
}

/// Stores a decision.
pub(super) async fn decide(
    State(site): State<Arc<SiteState>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let (disagreement, _) = match requested(&site, &id, &headers) {
        Ok(requested) => requested,
        Err(response) => return response,
    };
    let field = |name: &str| field_value(&fields, name);
    let [low, high] = if disagreement.is_preference {
        [-1, 1]
    } else {
        site.plan.rubric.scores.map(|score| i8::try_from(score).unwrap_or(i8::MAX))
    };
    let value = field(VALUE).and_then(|value| value.parse::<i8>().ok());
    let Some(value) = value.filter(|value| (low..=high).contains(value)) else {
        let text = "Go back and choose a value.";
        return message(&site, StatusCode::UNPROCESSABLE_ENTITY, "No decision", text);
    };
    let value = if disagreement.is_swapped { -value } else { value };
    let entry = AdjudicationEntry {
        schema: SCHEMA,
        time: format_rfc3339(SystemTime::now()),
        target: disagreement.target,
        case: disagreement.item.case,
        models: disagreement.item.models,
        value,
        comment: field(COMMENT).map_or_else(String::new, limit_text),
    };
    let recording = Arc::clone(&site);
    let stored = tokio::task::spawn_blocking(move || recording.adjudicate(entry)).await;
    if let Err(error) = stored.map_err(Error::from).flatten() {
        print_unsaved("decision of the administrator", &error);
        let text = "The decision could not be saved. Go back and try again.";
        return message(&site, StatusCode::INTERNAL_SERVER_ERROR, "Not saved", text);
    }
    Redirect::to("/admin/disagreements").into_response()
}

/// Sends the image of the case of a disagreement.
pub(super) async fn image(
    State(site): State<Arc<SiteState>>,
    Path(id): Path<String>,
    Query(query): Query<CaseQuery>,
    headers: HeaderMap,
) -> Response {
    let source = match requested(&site, &id, &headers) {
        Ok((_, task)) => task.case.image.clone(),
        Err(response) => return response,
    };
    let request = "disagreement".to_owned();
    CaseImage { source, window: query.window(), request }.send(&site).await
}

/// Returns all disagreements in the order of the cases.
fn all_disagreements(site: &SiteState) -> Vec<Disagreement> {
    let ratings = site.ratings();
    let mut all = disagreements(&rated_targets(&site.plan, &ratings), &site.adjudications());
    let tasks = site.plan.tasks.iter().enumerate();
    let places: HashMap<&str, usize> =
        tasks.rev().map(|(place, task)| (task.case.id.as_str(), place)).collect();
    // Stable, so that the disagreements of a case keep the order of the rubric.
    all.sort_by_key(|disagreement| places.get(disagreement.item.case.as_str()).copied());
    all
}

/// Returns a disagreement with a task about its case, or the answer to everybody else.
#[expect(clippy::result_large_err, reason = "the error is the response, which is sent at once")]
fn requested<'a>(
    site: &'a SiteState,
    id: &str,
    headers: &HeaderMap,
) -> Result<(Disagreement, &'a Task), Response> {
    if visitor(site, headers) != Some(Visitor::Administrator) {
        return Err(denied(site));
    }
    let found = block_in_place(|| all_disagreements(site))
        .into_iter()
        .find(|disagreement| disagreement.id == id);
    let found = found.and_then(|disagreement| {
        let task = site.plan.tasks.iter().find(|task| task.case.id == disagreement.item.case)?;
        Some((disagreement, task))
    });
    found.ok_or_else(|| {
        let text = "The raters do not disagree about this any more.";
        message(site, StatusCode::NOT_FOUND, "No such disagreement", text)
    })
}

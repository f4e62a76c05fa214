//! Handlers of the requests of the administrator: progress, agreement, and files of results.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use tokio::task::block_in_place;

use super::access::Visitor;
use super::responses::{denied, message, print_failure, visitor};
use super::site_state::SiteState;
use crate::annotation::pages::admin_page::AdminPage;
use crate::annotation::results::disagreement::disagreements;
use crate::annotation::results::rated_items::rated_targets;
use crate::annotation::results::study_agreement::StudyAgreement;
use crate::annotation::results::{ResultFile, StudyResults};

/// Shows the progress of all raters.
pub(super) async fn show_progress(
    State(site): State<Arc<SiteState>>,
    headers: HeaderMap,
) -> Response {
    if visitor(&site, &headers) != Some(Visitor::Administrator) {
        return denied(&site);
    }
    let ratings = site.ratings();
    let (entries, computing) = (ratings.entries(), Arc::clone(&site));
    let compute = move || StudyAgreement::new(&computing.plan, &ratings);
    let agreement = match site.agreement.get(entries, compute).await {
        Ok(agreement) => agreement,
        Err(error) => {
            print_failure("page of the administrator", &error);
            let text = "The page could not be computed. Reload it.";
            return message(&site, StatusCode::INTERNAL_SERVER_ERROR, "No page", text);
        }
    };
    let page = block_in_place(|| {
        let ratings = site.ratings();
        let all = disagreements(&rated_targets(&site.plan, &ratings), &site.adjudications());
        let undecided = all.iter().filter(|disagreement| disagreement.decided.is_none()).count();
        let (plan, ratings, agreement) = (&site.plan, &ratings, agreement.as_ref());
        AdminPage { plan, ratings, agreement, undecided }.render()
    });
    Html(page).into_response()
}

/// Sends a file of results.
pub(super) async fn download(
    State(site): State<Arc<SiteState>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    if visitor(&site, &headers) != Some(Visitor::Administrator) {
        return denied(&site);
    }
    let Some(file) = ResultFile::of_study(&site.plan).find(|file| file.name() == name) else {
        return message(&site, StatusCode::NOT_FOUND, "No such file", "There is no such file.");
    };
    let content = block_in_place(|| {
        let (ratings, decided) = (site.ratings(), site.adjudications());
        file.content(&StudyResults {
            plan: &site.plan,
            ratings: &ratings,
            decided: &decided,
            image_folder: &site.image_folder,
        })
    });
    match content {
        Ok(text) => {
            let disposition = format!("attachment; filename=\"{}\"", file.name());
            let kind = file.media_type().to_owned();
            ([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, disposition)], text).into_response()
        }
        Err(error) => {
            let text = format!("{error:#}");
            message(&site, StatusCode::INTERNAL_SERVER_ERROR, "No file", &text)
        }
    }
}

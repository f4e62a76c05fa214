//! Handlers of the requests of the administrator: progress, agreement, and files of results.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use tokio::task::block_in_place;

use super::access::Visitor;
use super::responses::{denied, message, visitor};
use super::site_state::SiteState;
use crate::annotation::pages::admin_page::AdminPage;
use crate::annotation::results::disagreement::disagreements;
use crate::annotation::results::judge_ratings::JudgeRating;
use crate::annotation::results::live_agreement::RaterAgreement;
use crate::annotation::results::rated_items::rated_targets;
use crate::annotation::results::{ResultFile, StudyResults};
use crate::annotation::study::Part;

/// Shows the progress of all raters.
pub(super) async fn show_progress(
    State(site): State<Arc<SiteState>>,
    headers: HeaderMap,
) -> Response {
    if visitor(&site, &headers) != Some(Visitor::Administrator) {
        return denied(&site);
    }
    let counting = Arc::clone(&site);
    let page = tokio::task::spawn_blocking(move || {
        let ratings = counting.ratings();
        let targets = rated_targets(&counting.plan, &ratings);
        let agreement: Vec<RaterAgreement> = targets.iter().map(RaterAgreement::new).collect();
        let undecided = disagreements(&targets, &counting.adjudications())
            .iter()
            .filter(|disagreement| disagreement.decided.is_none())
            .count();
        let of_judges = targets.iter().filter(|target| target.part == Part::Evaluations);
        let judges: Vec<JudgeRating> =
            of_judges.map(|target| JudgeRating::new(target, &counting.plan.judges)).collect();
        let page = AdminPage {
            plan: &counting.plan,
            ratings: &ratings,
            agreement: &agreement,
            judges: &judges,
            undecided,
        };
        page.render()
    });
    match page.await {
        Ok(page) => Html(page).into_response(),
        Err(error) => {
            message(&site, StatusCode::INTERNAL_SERVER_ERROR, "No page", &error.to_string())
        }
    }
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

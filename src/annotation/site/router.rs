//! The addresses of the site.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{CONTENT_TYPE, HOST, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};

use super::access::Visitor;
use super::guard::guard;
use super::responses::{denied, message, visitor};
use super::session::set_cookie;
use super::site_state::SiteState;
use super::{adjudication_routes, admin_routes, evaluation_routes, rater_routes};
use crate::annotation::pages::message_page::entered_page;
use crate::annotation::pages::{SCRIPT, STYLE};

/// Maximum size of a form in bytes. The largest form has a comment, a reason, and two analyses for each of
/// a few dozen criteria, in a script whose characters a form sends as nine bytes.
const MAX_BODY: usize = 1024 * 1024;

/// Returns the site.
pub(super) fn router(site: Arc<SiteState>) -> Router {
    Router::new()
        .route("/", get(start))
        .route("/enter/{token}", get(enter))
        .route("/case/{number}", get(rater_routes::show_case).post(rater_routes::submit_case))
        .route("/case/{number}/image", get(rater_routes::show_image))
        .route("/evaluations/start", post(evaluation_routes::open))
        .route("/evaluation/{number}", get(evaluation_routes::show).post(evaluation_routes::submit))
        .route("/admin", get(admin_routes::show_progress))
        .route("/admin/results/{file}", get(admin_routes::download))
        .route("/admin/disagreements", get(adjudication_routes::list))
        .route(
            "/admin/disagreements/{id}",
            get(adjudication_routes::show).post(adjudication_routes::decide),
        )
        .route("/admin/disagreements/{id}/image", get(adjudication_routes::image))
        .route("/style.css", get(|| async { ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }))
        .route(
            "/site.js",
            get(|| async { ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT) }),
        )
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site)
}

/// Accepts the link of a visitor: sets the cookie.
async fn enter(
    State(site): State<Arc<SiteState>>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    if site.access.visitor(&token).is_none() {
        return denied(&site);
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_encrypted = site.hosts.is_encrypted(host);
    let cookie = set_cookie(&site.access.cookie_name(), &token, is_encrypted);
    ([(SET_COOKIE, cookie)], Html(entered_page(&site.plan.config.name))).into_response()
}

/// Shows the start page of a visitor.
async fn start(State(site): State<Arc<SiteState>>, headers: HeaderMap) -> Response {
    match visitor(&site, &headers) {
        Some(Visitor::Administrator) => Redirect::to("/admin").into_response(),
        Some(Visitor::Rater(rater)) => Html(rater_routes::overview(&site, rater)).into_response(),
        None => denied(&site),
    }
}

async fn not_found(State(site): State<Arc<SiteState>>) -> Response {
    message(&site, StatusCode::NOT_FOUND, "No such page", "There is nothing at this address.")
}

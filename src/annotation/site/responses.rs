//! Who sent a request, and answers that are messages.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};

use super::access::Visitor;
use super::session::cookie_token;
use super::site_state::SiteState;
use crate::annotation::pages::message_page::message_page;
use crate::support::terminal::progress::print_lines;

/// Returns who sent a request.
pub(super) fn visitor(site: &SiteState, headers: &HeaderMap) -> Option<Visitor> {
    site.access.visitor(cookie_token(headers, &site.access.cookie_name())?)
}

/// Returns the answer to a visitor without a valid link.
pub(super) fn denied(site: &SiteState) -> Response {
    message(
        site,
        StatusCode::FORBIDDEN,
        "No access",
        "Open the link that you received. If it does not work, ask the person who sent it.",
    )
}

/// Returns a page with a message.
pub(super) fn message(site: &SiteState, status: StatusCode, title: &str, text: &str) -> Response {
    (status, Html(message_page(&site.plan.config.name, title, text))).into_response()
}

/// Prints on the terminal why something failed: the reason names files, which raters must not see.
pub(super) fn print_failure(what: &str, error: &anyhow::Error) {
    print_lines(&format!("error: {what}: {error:#}"));
}

/// Prints on the terminal why answers could not be saved.
pub(super) fn print_unsaved(what: &str, error: &anyhow::Error) {
    print_failure(&format!("{what}: not saved"), error);
    print_lines("hint: look whether the disk is full; the page asks to try again");
}

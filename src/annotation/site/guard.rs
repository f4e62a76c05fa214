//! Checks of every request before anything else: the host, the origin, and the headers of the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::time::timeout;

use super::allowed_hosts::AllowedHosts;
use super::responses::message;
use super::site_state::SiteState;

/// What a page may load: its own style, script and images, and nothing else.
const POLICY: &str = "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Time for a request with its body, so that slow ones do not hold connections for ever.
const MAX_REQUEST_TIME: Duration = Duration::from_mins(2);
/// Header of browsers that says where a request comes from.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Rejects requests of other sites, and adds the headers of a safe answer.
pub(super) async fn guard(
    State(site): State<Arc<SiteState>>,
    request: Request,
    next: Next,
) -> Response {
    let problem = check_request(&site.hosts, request.method(), request.headers());
    let mut response = match problem {
        None => match timeout(MAX_REQUEST_TIME, next.run(request)).await {
            Ok(response) => explained(&site, response),
            Err(_) => explained(&site, StatusCode::REQUEST_TIMEOUT.into_response()),
        },
        Some(problem) => (StatusCode::FORBIDDEN, problem).into_response(),
    };
    let headers = response.headers_mut();
    let values: [(HeaderName, &'static str); 5] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // With "no-referrer", browsers send the origin "null" with forms.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in values {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the answer, as a page with a message if the server rejected the request before a handler saw it.
fn explained(site: &SiteState, response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !status.is_client_error() || kind.is_some_and(|kind| kind.starts_with("text/html")) {
        return response;
    }
    let (title, text) = match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ("Too long", "Nothing is saved. Go back, shorten your texts, and try again.")
        }
        StatusCode::REQUEST_TIMEOUT => (
            "Too slow",
            "The page took too long. Go back, look whether your entries are saved, and try again.",
        ),
        StatusCode::METHOD_NOT_ALLOWED => ("No such page", "There is nothing at this address."),
        _ => ("Not understood", "Nothing is saved. Go back, reload the page, and try again."),
    };
    message(site, status, title, text)
}

/// Returns why a request is rejected.
fn check_request(
    hosts: &AllowedHosts,
    method: &Method,
    headers: &HeaderMap,
) -> Option<&'static str> {
    // A header that is sent twice is ambiguous, so it counts as missing.
    let header = |name: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())?.to_str().ok()
    };
    if !header(HOST.as_str()).is_some_and(|host| hosts.contains(host)) {
        return Some("This address is not served under this name.");
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    // A browser sends the origin with every form.
    let is_own = header(ORIGIN.as_str()).is_some_and(|origin| hosts.is_origin(origin))
        && header(SEC_FETCH_SITE).is_none_or(|site| site == "same-origin");
    (!is_own).then_some("The form does not come from this site.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hosts_and_origins_are_rejected() {
        let hosts =
            AllowedHosts::new("127.0.0.1:8080".parse().unwrap(), &["Rate.example".to_owned()]);
        let check = |method: &Method, pairs: &[(&str, &str)]| {
            let headers = pairs.iter().map(|(name, value)| {
                (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
            });
            check_request(&hosts, method, &headers.collect()).is_none()
        };
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "rate.example"] {
            assert!(check(&Method::GET, &[("host", host)]), "{host}");
        }
        for host in ["", "evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8080.evil.example"]
        {
            assert!(!check(&Method::GET, &[("host", host)]), "{host}");
        }
        assert!(!check(&Method::GET, &[]));
        assert!(!check(&Method::GET, &[("host", "localhost:8080"), ("host", "evil.example")]));
        let host = ("host", "localhost:8080");
        assert!(check(&Method::POST, &[host, ("origin", "http://localhost:8080")]));
        assert!(check(&Method::POST, &[host, ("origin", "https://rate.example")]));
        for origin in ["http://evil.example", "null", "http://localhost:8081", "localhost:8080"] {
            assert!(!check(&Method::POST, &[host, ("origin", origin)]), "{origin}");
        }
        assert!(!check(&Method::POST, &[host]));
        let same = ("origin", "http://localhost:8080");
        assert!(!check(&Method::POST, &[host, same, (SEC_FETCH_SITE, "cross-site")]));
    }
}

//! Redirects that a request to the hub may follow.

use reqwest::Url;
use reqwest::redirect::Policy;

use crate::support::network::service_url::is_loopback;

/// Maximum number of consecutive redirects.
pub(super) const MAX_REDIRECTS: usize = 8;

/// Returns the rules for redirects of [`find_redirect_problem`].
pub(super) fn redirect_policy(allow_http: bool) -> Policy {
    Policy::custom(move |attempt| {
        match find_redirect_problem(attempt.previous(), attempt.url(), allow_http) {
            Some(problem) => attempt.error(problem),
            None => attempt.follow(),
        }
    })
}

/// Returns what is wrong with a redirect. The number of redirects is limited, and none leads from
/// https to http. Plain http leads to this machine only, unless the user accepts other hosts.
fn find_redirect_problem(previous: &[Url], next: &Url, allow_http: bool) -> Option<&'static str> {
    let from = previous.last().map_or("", Url::scheme);
    let is_plain = next.scheme() != "https";
    if previous.len() > MAX_REDIRECTS {
        Some("too many redirects")
    } else if from == "https" && is_plain {
        Some("redirect from https to http")
    } else if is_plain && !allow_http && !is_loopback(next) {
        Some("redirect to another host over plain http")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_encrypted() {
        let url = |text: &str| Url::parse(text).unwrap();
        let problem = |from: &str, to: &str, allow_http| {
            find_redirect_problem(&[url(from)], &url(to), allow_http)
        };
        let (secure, plain, local) = ("https://hub/a", "http://cdn/b", "http://127.0.0.1:1/c");
        for (from, to, allow_http, expected) in [
            (secure, "https://cdn/b", false, None),
            (secure, plain, true, Some("redirect from https to http")),
            (secure, local, true, Some("redirect from https to http")),
            (secure, "ftp://cdn/b", true, Some("redirect from https to http")),
            (local, "http://localhost:2/c", false, None),
            (local, plain, false, Some("redirect to another host over plain http")),
            (plain, plain, true, None),
        ] {
            assert_eq!(problem(from, to, allow_http), expected, "{from} {to}");
        }
        let many = vec![url(secure); MAX_REDIRECTS + 1];
        assert_eq!(find_redirect_problem(&many, &url(secure), false), Some("too many redirects"));
    }
}

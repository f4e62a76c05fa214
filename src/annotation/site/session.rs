//! The cookie of a visitor.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

/// Returns the value of the header that sets a cookie. It lasts for the session of the browser. `is_secure`:
/// true if the browser must not send it without encryption.
pub(super) fn set_cookie(name: &str, token: &str, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// Returns the value of a cookie of a request.
pub(super) fn cookie_token<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
    cookies.find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn token_is_found_among_cookies() {
        let headers =
            |text: &str| HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(text).unwrap())]);
        assert_eq!(cookie_token(&headers("a=1; acem3=xyz;b=2"), "acem3"), Some("xyz"));
        assert_eq!(cookie_token(&headers("acem30=1; b=acem3=2"), "acem3"), None);
        assert_eq!(cookie_token(&HeaderMap::new(), "acem3"), None);
    }
}

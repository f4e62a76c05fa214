//! The cookie of a visitor.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

/// Name of the cookie.
const NAME: &str = "acem3";

/// Returns the value of the header that sets the cookie. It lasts for the session of the browser.
pub(super) fn set_cookie(token: &str) -> String {
    format!("{NAME}={token}; Path=/; HttpOnly; SameSite=Strict")
}

/// Returns the token in the cookies of a request.
pub(super) fn cookie_token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
    cookies.find_map(|cookie| cookie.trim().strip_prefix(NAME)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn token_is_found_among_cookies() {
        let headers =
            |text: &str| HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(text).unwrap())]);
        assert_eq!(cookie_token(&headers("a=1; acem3=xyz;b=2")), Some("xyz"));
        assert_eq!(cookie_token(&headers("acem30=1; b=acem3=2")), None);
        assert_eq!(cookie_token(&HeaderMap::new()), None);
    }
}

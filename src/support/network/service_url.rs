//! Base URLs of services that the user names.

use reqwest::Url;

/// Base URL of a service: without credentials, and encrypted unless the service runs on this
/// machine or the user accepts plain http.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUrl(Url);

/// What a base URL may be.
#[derive(Clone, Copy, Debug)]
pub struct UrlRules<'a> {
    /// The environment variable with the key of the service.
    pub key_variable: &'a str,
    /// True to accept plain http to other hosts.
    pub allow_http: bool,
}

/// A text that is no acceptable base URL. The message does not contain the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}\nhint: {hint}")]
pub struct UrlError {
    /// What is wrong.
    pub reason: String,
    /// What to do, without `hint:`.
    pub hint: String,
}

impl ServiceUrl {
    /// Parses a base URL.
    ///
    /// # Errors
    ///
    /// The text is no URL, contains credentials, or names another host with plain http.
    pub fn parse(text: &str, rules: UrlRules) -> Result<Self, UrlError> {
        let error = |reason: &str, hint: String| Err(UrlError { reason: reason.to_owned(), hint });
        let example = || "pass a base URL, for example https://host/v1".to_owned();
        let key_hint = || {
            format!(
                "remove them from the URL, and set {} to the key; URLs are printed and stored",
                rules.key_variable
            )
        };
        let Ok(url) = Url::parse(text.trim()) else {
            return error("not a URL", example());
        };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return error("expected a URL that begins with http:// or https://", example());
        }
        if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
            return error("the URL contains a user name or a password", key_hint());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return error("the URL contains parameters after `?` or `#`", key_hint());
        }
        let url = Self(url);
        if url.host() == "0.0.0.0" {
            return error(
                "0.0.0.0 is no address of a server",
                "servers print it if they listen on all addresses; pass 127.0.0.1 for this machine"
                    .to_owned(),
            );
        }
        if url.0.scheme() == "http" && !url.is_local() && !rules.allow_http {
            return error(
                "plain http to another host sends keys and data unencrypted",
                "use https, or pass --allow-http if the network is trusted".to_owned(),
            );
        }
        Ok(url)
    }

    /// Returns the text of the URL, without a `/` at its end.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// Returns the URL.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Returns the host.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns true if this is the host, in upper or lower case.
    pub fn has_host(&self, host: &str) -> bool {
        self.host().eq_ignore_ascii_case(host.trim())
    }

    /// Returns true if the service runs on this machine. A proxy cannot reach it there.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.0)
    }
}

/// Returns true if the host of a URL is this machine: `localhost`, 127.0.0.0/8 or `::1`.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns true if a text looks like a URL, or part of one, with a scheme of the web.
pub fn looks_like_url(text: &str) -> bool {
    let start = text.trim_start().get(..8).unwrap_or(text).to_ascii_lowercase();
    start.starts_with("http:/") || start.starts_with("https:/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: UrlRules<'static> = UrlRules { key_variable: "THE_KEY", allow_http: false };

    #[test]
    fn urls_with_credentials_are_rejected_without_printing_them() {
        for text in [
            "https://secret@host/v1",
            "https://user:secret@host/v1",
            "https://:secret@host/v1",
            "https://user:se/secret@host/v1",
            "https://host/v1?api_key=secret",
            "https://host/v1?secret",
            "https://host/v1#secret",
            "http://user:secret@127.0.0.1:8000/v1",
        ] {
            let error = ServiceUrl::parse(text, RULES).unwrap_err();
            let message = error.to_string();
            assert!(!message.contains("secret"), "{message}");
            assert!(message.contains("hint: "), "{message}");
        }
        let error = ServiceUrl::parse("https://user:secret@host/v1", RULES).unwrap_err();
        assert!(error.hint.contains("set THE_KEY"), "{error}");
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        let is_accepted = |text: &str, allow_http| {
            ServiceUrl::parse(text, UrlRules { allow_http, ..RULES }).is_ok()
        };
        for local in [
            "http://localhost:8000/v1",
            "http://127.0.0.1/v1",
            "http://127.9.8.7:1/v1",
            "http://[::1]:8000/v1",
            "https://host/v1",
        ] {
            assert!(is_accepted(local, false), "{local}");
        }
        for other in [
            "http://host/v1",
            "http://10.0.0.1/v1",
            "http://localhost.example/v1",
            "http://127.0.0.1.example/v1",
            "http://[2001:db8::1]/v1",
        ] {
            assert!(!is_accepted(other, false), "{other}");
            assert!(is_accepted(other, true), "{other}");
        }
        for never in [
            "ftp://host",
            "host/v1",
            "https://",
            "http:///v1?",
            "file:///etc/passwd",
            "http://0.0.0.0:8000/v1",
        ] {
            assert!(!is_accepted(never, true), "{never}");
        }
        assert!(looks_like_url("HTTPS://host") && looks_like_url("http:/host"));
        assert!(!looks_like_url("owner/name") && !looks_like_url("httpd"));
    }
}

//! Where a redirect leads, and to whom a token may go.

use std::fmt::Write as _;

use ureq::http::Uri;
use ureq::http::uri::Scheme;

/// The address a `Location` means, seen from the one that answered. `None` where it is no address,
/// or gives up encryption.
pub(super) fn resolve(from: &Uri, location: &str) -> Option<Uri> {
    let scheme = from.scheme_str()?;
    let origin = || Some(format!("{scheme}://{}", from.authority()?));
    let text = if location.starts_with("http://") || location.starts_with("https://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        origin()? + location
    } else {
        let folder = from
            .path()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        format!("{}{folder}/{location}", origin()?)
    };
    let text = text.split_once('#').map_or(text.as_str(), |(text, _)| text);
    let to: Uri = text.parse().ok()?;
    let weaker = from.scheme() == Some(&Scheme::HTTPS) && to.scheme() != Some(&Scheme::HTTPS);
    (to.host().is_some() && !weaker).then_some(to)
}

/// Whether two addresses are of one server: scheme, host and port.
pub(super) fn same_server(a: &Uri, b: &Uri) -> bool {
    let port = |uri: &Uri| {
        let default = if uri.scheme() == Some(&Scheme::HTTPS) {
            443
        } else {
            80
        };
        uri.port_u16().unwrap_or(default)
    };
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    a.scheme() == b.scheme() && host(a) == host(b) && port(a) == port(b)
}

/// The host and port of an address, for messages: without the path and the signature in its query.
pub(super) fn host(uri: &Uri) -> String {
    let port = uri
        .port_u16()
        .map_or(String::new(), |port| format!(":{port}"));
    format!("{}{port}", uri.host().unwrap_or("an address without host"))
}

/// A path or revision as it stands in an address.
pub(super) fn quoted(text: &str, keep_slash: bool) -> String {
    let mut quoted = String::new();
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        if plain || keep_slash && byte == b'/' {
            quoted.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(quoted, "%{byte:02X}");
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn locations_are_resolved() {
        let from = uri("https://hub.example/a/b/resolve/main/c.json?x=1");
        let to = |location: &str| resolve(&from, location).map(|uri| uri.to_string());
        assert_eq!(to("/api/x").as_deref(), Some("https://hub.example/api/x"));
        assert_eq!(
            to("d.json").as_deref(),
            Some("https://hub.example/a/b/resolve/main/d.json")
        );
        assert_eq!(
            to("//cdn.example/x#y").as_deref(),
            Some("https://cdn.example/x")
        );
        assert_eq!(
            to("https://cdn.example/x?s=1").as_deref(),
            Some("https://cdn.example/x?s=1")
        );
        assert_eq!(to("http://cdn.example/x"), None);
        assert_eq!(to("https://"), None);
    }

    #[test]
    fn a_server_is_scheme_host_and_port() {
        let a = uri("https://hub.example/x");
        assert!(same_server(&a, &uri("https://HUB.example:443/y")));
        for other in [
            "http://hub.example/x",
            "https://hub.example:8443/x",
            "https://cdn.hub.example/x",
        ] {
            assert!(!same_server(&a, &uri(other)), "{other}");
        }
        assert_eq!(host(&uri("http://h:1/secret?sig=2")), "h:1");
        assert_eq!(quoted("refs/pr 1", false), "refs%2Fpr%201");
        assert_eq!(quoted("a/b c", true), "a/b%20c");
    }
}

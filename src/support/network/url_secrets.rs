//! Hides credentials in URLs within a text, before it is printed or stored.

use std::borrow::Cow;

/// Characters that end a URL within a text.
const ENDS: [char; 5] = ['"', '\'', '`', '<', '>'];

/// Replaces the user information and the parameters of all URLs in a text.
pub fn hide_url_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        hidden.extend([before, "://"]);
        let end = after.find(|c: char| c.is_whitespace() || ENDS.contains(&c));
        let (url, after) = after.split_at(end.unwrap_or(after.len()));
        // A password may contain characters that end the user information of a correct URL.
        let (user, url) = match url.rsplit_once('@') {
            Some((_, url)) => ("…@", url),
            None => ("", url),
        };
        hidden.push_str(user);
        match url.split_once('?') {
            Some((url, parameters)) if !parameters.is_empty() => hidden.extend([url, "?…"]),
            _ => hidden.push_str(url),
        }
        rest = after;
    }
    hidden.push_str(rest);
    Cow::Owned(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_credentials_are_hidden() {
        for (text, expected) in [
            ("see https://host/v1.", "see https://host/v1."),
            ("no URL: a@b?c", "no URL: a@b?c"),
            ("--panel https://me:pw@host/a: unknown", "--panel https://…@host/a: unknown"),
            ("https://k@h?x=1 and http://h/p?key=v, twice", "https://…@h?… and http://h/p?… twice"),
            ("`https://u:p/w@h/v1?a`", "`https://…@h/v1?…`"),
            ("what is https://h?", "what is https://h?"),
        ] {
            assert_eq!(hide_url_secrets(text), expected);
        }
    }
}

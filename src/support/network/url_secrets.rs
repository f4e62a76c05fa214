//! Hides credentials in URLs within a text, before it is printed or stored.

use std::borrow::Cow;

/// Characters that end a URL within a text.
const ENDS: [char; 5] = ['"', '\'', '`', '<', '>'];

/// Replaces the user information and the parameters of all URLs in a text, with or without scheme.
pub fn hide_url_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains(['@', '?']) {
        return Cow::Borrowed(text);
    }
    let is_end = |c: char| c.is_whitespace() || ENDS.contains(&c);
    let mut hidden = String::with_capacity(text.len());
    for part in text.split_inclusive(is_end) {
        let word = part.trim_end_matches(is_end);
        if word.contains("://") {
            hide_in_url(word, &mut hidden);
        } else {
            hide_in_word(word, &mut hidden);
        }
        hidden.push_str(&part[word.len()..]);
    }
    Cow::Owned(hidden)
}

/// Hides the credentials of URLs with a scheme.
fn hide_in_url(word: &str, hidden: &mut String) {
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("://") {
        hidden.extend([before, "://"]);
        // The next URL may follow without a space.
        let end = after.find("://").and_then(|next| after[..next].rfind(|c| !is_scheme(c)));
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
}

/// Returns true for the characters of a scheme.
fn is_scheme(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// Hides `user:password@` and `?name=value` in a word that may be a URL without scheme, or a
/// repository.
fn hide_in_word(word: &str, hidden: &mut String) {
    let (user, word) = match word.rsplit_once('@') {
        Some((user, rest)) if user.contains(':') => ("…@", rest),
        _ => ("", word),
    };
    hidden.push_str(user);
    match word.split_once('?') {
        Some((path, parameters)) if parameters.contains('=') => hidden.extend([path, "?…"]),
        _ => hidden.push_str(word),
    }
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
            ("https://k@h/a,http://u@i/b", "https://…@h/a,http://…@i/b"),
            ("the panel me:pw@h/x: unknown", "the panel …@h/x: unknown"),
            ("`owner/name?token=t` and h:1/v1?key=k", "`owner/name?…` and h:1/v1?…"),
            ("owner/name@main: is this it? a=b", "owner/name@main: is this it? a=b"),
            ("why?\n\thint: ask?", "why?\n\thint: ask?"),
        ] {
            assert_eq!(hide_url_secrets(text), expected);
        }
    }
}

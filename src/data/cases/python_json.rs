//! Reads the JSON extensions of Python's `json` module: `NaN`, `Infinity`, numbers beyond the range of a double, and
//! lone surrogates.
//!
//! Values without JSON equivalent become `null`, and lone surrogates become U+FFFD, so that an optional field does not
//! make a case unreadable.

use serde_json::Value;

/// Parses JSON, or Python's extension of it.
pub(super) fn read(text: &str) -> serde_json::Result<Value> {
    let strict = serde_json::from_str(text);
    strict.or_else(|error| match mended(text) {
        Some(mended) => serde_json::from_str(&mended).map_err(|_| error),
        None => Err(error),
    })
}

/// Message of a JSON error without its line number, which is always 1 for single lines.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    reason.to_owned()
}

/// Converts the extensions to JSON; `None` if there are none.
fn mended(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(first) = rest.chars().next() {
        let (token, own) = if first == '"' {
            let end = end_of_string(rest);
            let string = whole_characters(&rest[..end]);
            changed |= string.is_some();
            (end, string)
        } else if is_bare(first) {
            let end = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
            let null = is_no_number(&rest[..end]).then(|| "null".to_owned());
            changed |= null.is_some();
            (end, null)
        } else {
            (first.len_utf8(), None)
        };
        plain.push_str(own.as_deref().unwrap_or(&rest[..token]));
        rest = &rest[token..];
    }
    changed.then_some(plain)
}

/// Length of the string that starts here, including quotes.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Whether a bare word is a number in Python but not in JSON.
fn is_no_number(word: &str) -> bool {
    let digits = word.trim_start_matches('-');
    match word.parse::<f64>() {
        Ok(value) if !value.is_finite() => {
            matches!(digits, "NaN" | "Infinity") || digits.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    }
}

/// Replaces lone surrogates in a quoted string; `None` if there are none.
fn whole_characters(string: &str) -> Option<String> {
    let mut whole = String::with_capacity(string.len());
    let (mut rest, mut changed) = (string, false);
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |text: &str| -> Option<u16> {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            u16::from_str_radix(digits, 16).ok()
        };
        let length = match unit(rest) {
            Some(0xd800..=0xdbff) => {
                let low = rest.get(6..).and_then(unit);
                if matches!(low, Some(0xdc00..=0xdfff)) {
                    12
                } else {
                    0
                }
            }
            Some(0xdc00..=0xdfff) => 0,
            Some(_) => 6,
            None => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
        };
        if length == 0 {
            whole.push('\u{fffd}');
            changed = true;
            rest = rest.get(6..).unwrap_or_default();
        } else {
            let (kept, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
            whole.push_str(kept);
            rest = behind;
        }
    }
    whole.push_str(rest);
    changed.then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn python_extensions_are_read() {
        let text = r#"{"a": NaN, "b": [-Infinity, 1e999, 2], "c": "NaN \" 1e999", "d": 1}"#;
        let expected = json!({"a": null, "b": [null, null, 2], "c": "NaN \" 1e999", "d": 1});
        assert_eq!(read(text).unwrap(), expected);
        let halves =
            r#"{"a": "x \ud83d y", "b": "\udc00\ud83d\ude00\\ud83d", "c": "\ud83d\u0041"}"#;
        let expected =
            json!({"a": "x \u{fffd} y", "b": "\u{fffd}\u{1f600}\\ud83d", "c": "\u{fffd}A"});
        assert_eq!(read(halves).unwrap(), expected);
    }

    #[test]
    fn other_malformed_json_stays_an_error() {
        for text in [
            "",
            "{",
            "{\"a\": nan}",
            "{\"a\": NaN",
            "{\"a\": \"\\ud8",
            "{\"a\": 1e999 2}",
            "\"\\",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}

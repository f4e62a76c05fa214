//! Reads the JSON extensions of Python's `json` module: `NaN`, `Infinity`, numbers outside the
//! range of a double, and lone surrogates.
//!
//! Such numbers become `null`, and lone surrogates become U+FFFD, so that an optional field does
//! not make a case unreadable.

use serde::de::Error as _;
use serde_json::Value;

/// Maximum number of objects and arrays in a text. Each takes up to 700 bytes of memory, for as
/// little as two bytes of text.
const MAX_CONTAINERS: usize = 100_000;

/// Parses JSON with Python's extensions.
///
/// # Errors
/// The text is malformed, or has more than [`MAX_CONTAINERS`] objects and arrays.
pub(crate) fn parse(text: &str) -> serde_json::Result<Value> {
    if has_too_many_containers(text) {
        return Err(serde_json::Error::custom(format!(
            "more than {MAX_CONTAINERS} objects and arrays"
        )));
    }
    let strict = serde_json::from_str(text);
    strict.or_else(|error| match to_standard_json(text) {
        Some(standard) => serde_json::from_str(&standard).map_err(|_| error),
        None => Err(error),
    })
}

/// Returns true if a text has more than [`MAX_CONTAINERS`] brackets that open an object or array.
fn has_too_many_containers(text: &str) -> bool {
    if text.len() <= MAX_CONTAINERS {
        return false;
    }
    let (mut containers, mut rest) = (0, text);
    while let Some(position) = rest.find(['"', '{', '[']) {
        rest = &rest[position..];
        if rest.starts_with('"') {
            rest = &rest[string_length(rest)..];
        } else {
            containers += 1;
            rest = &rest[1..];
        }
    }
    containers > MAX_CONTAINERS
}

/// Returns the message of a JSON error in plain words, without its line number, which is always 1
/// for a single line.
pub(crate) fn error_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    // serde_json expects an identifier after the first letter of `null`, `true` or `false`.
    reason.replacen("expected ident", "expected null, true, false or a text in double quotes", 1)
}

/// Converts the extensions to JSON; `None` if there are none.
fn to_standard_json(text: &str) -> Option<String> {
    let mut standard = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(first) = rest.chars().next() {
        let (length, replacement) = if first == '"' {
            let end = string_length(rest);
            let string = replace_lone_surrogates(&rest[..end]);
            changed |= string.is_some();
            (end, string)
        } else if is_bare_char(first) {
            let end = rest.find(|c| !is_bare_char(c)).unwrap_or(rest.len());
            let null = is_python_only_number(&rest[..end]).then(|| "null".to_owned());
            changed |= null.is_some();
            (end, null)
        } else {
            (first.len_utf8(), None)
        };
        standard.push_str(replacement.as_deref().unwrap_or(&rest[..length]));
        rest = &rest[length..];
    }
    changed.then_some(standard)
}

/// Returns the length of the string that starts here, including quotes.
fn string_length(text: &str) -> usize {
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

fn is_bare_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Returns true if an unquoted word is a number in Python but not in JSON.
fn is_python_only_number(word: &str) -> bool {
    let digits = word.trim_start_matches('-');
    match word.parse::<f64>() {
        Ok(value) if !value.is_finite() => {
            matches!(digits, "NaN" | "Infinity") || digits.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    }
}

/// Replaces lone surrogates in a quoted string; `None` if there are none.
fn replace_lone_surrogates(string: &str) -> Option<String> {
    let mut replaced = String::with_capacity(string.len());
    let (mut rest, mut changed) = (string, false);
    while let Some(backslash) = rest.find('\\') {
        replaced.push_str(&rest[..backslash]);
        rest = &rest[backslash..];
        // The UTF-16 code unit of a `\uXXXX` escape.
        let unit = |text: &str| -> Option<u16> {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            u16::from_str_radix(digits, 16).ok()
        };
        // Length of the escape or surrogate pair; 0 for a lone surrogate.
        let length = match unit(rest) {
            Some(0xd800..=0xdbff) => {
                let low = rest.get(6..).and_then(unit);
                if matches!(low, Some(0xdc00..=0xdfff)) { 12 } else { 0 }
            }
            Some(0xdc00..=0xdfff) => 0,
            Some(_) => 6,
            None => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
        };
        if length == 0 {
            replaced.push('\u{fffd}');
            changed = true;
            rest = rest.get(6..).unwrap_or_default();
        } else {
            let (character, tail) = rest.split_at_checked(length).unwrap_or((rest, ""));
            replaced.push_str(character);
            rest = tail;
        }
    }
    replaced.push_str(rest);
    changed.then_some(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn python_extensions_are_read() {
        let text = r#"{"a": NaN, "b": [-Infinity, 1e999, 2], "c": "NaN \" 1e999", "d": 1}"#;
        let expected = json!({"a": null, "b": [null, null, 2], "c": "NaN \" 1e999", "d": 1});
        assert_eq!(parse(text).unwrap(), expected);
        let surrogates =
            r#"{"a": "x \ud83d y", "b": "\udc00\ud83d\ude00\\ud83d", "c": "\ud83d\u0041"}"#;
        let expected =
            json!({"a": "x \u{fffd} y", "b": "\u{fffd}\u{1f600}\\ud83d", "c": "\u{fffd}A"});
        assert_eq!(parse(surrogates).unwrap(), expected);
    }

    #[test]
    fn number_of_containers_is_limited() {
        let array = |element: &str, n: usize| format!("[{}0]", format!("{element},").repeat(n));
        assert!(parse(&array("{\"\":0}", MAX_CONTAINERS - 1)).is_ok());
        assert!(parse(&array("\"[[{\\\"[\"", MAX_CONTAINERS)).is_ok());
        for element in ["{\"\":0}", "[]", "[0]"] {
            let error = parse(&array(element, MAX_CONTAINERS)).unwrap_err();
            assert_eq!(error_reason(&error), "more than 100000 objects and arrays");
        }
    }

    #[test]
    fn unquoted_word_is_reported_in_plain_words() {
        let reason = error_reason(&parse("{\"a\": nothing}").unwrap_err());
        assert_eq!(reason, "expected null, true, false or a text in double quotes");
    }

    #[test]
    fn other_malformed_json_stays_an_error() {
        for text in
            ["", "{", "{\"a\": nan}", "{\"a\": NaN", "{\"a\": \"\\ud8", "{\"a\": 1e999 2}", "\"\\"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

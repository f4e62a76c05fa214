//! Texts of strangers in pages and pictures: as HTML and SVG, and as JSON between the tags of a script.

use std::fmt::Write as _;

use crate::support::text::printable;

/// A text on one line as HTML has it, within an element or a quoted attribute. What could turn the direction of
/// the text behind it is told, not done.
pub(crate) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON that may stand in a `<script>`: the characters that could end the element, begin a comment or break a
/// line of a script stand only within strings, where JSON has another way to write them.
pub(crate) fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out() {
        let hostile = "</script><!--<img src=x onerror='alert(1)'>&amp;\u{2028}\"\u{0}";
        let text = serde_json::to_string(hostile).unwrap();
        let safe = json(&text);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
        let safe = html(hostile);
        assert!(
            !safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{2028}']),
            "{safe}"
        );
        assert!(safe.starts_with("&lt;/script&gt;"), "{safe}");
    }
}

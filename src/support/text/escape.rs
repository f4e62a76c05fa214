//! Escapes untrusted text for HTML, SVG and XML, and JSON for script elements.

use std::fmt::Write as _;

use crate::support::text::escape_control_chars;

/// Escapes a text for an HTML element or a quoted attribute, on one line. Also escapes direction
/// marks.
pub(crate) fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in escape_control_chars(text).chars() {
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

/// Escapes JSON for a `<script>` element. Characters that could end the element, start a comment or
/// break a line occur only within strings, where JSON has escapes for them.
pub(crate) fn escape_json(text: &str) -> String {
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

/// Escapes text for an attribute or an element of XML. Characters that XML 1.0 cannot contain (section 2.2)
/// become Rust escapes.
pub(crate) fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // A parser would turn these into spaces in an attribute.
            '\t' | '\n' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.extend(c.escape_unicode());
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
    fn hostile_text_is_escaped() {
        let hostile = "</script><!--<img src=x onerror='alert(1)'>&amp;\u{2028}\"\u{0}";
        let text = serde_json::to_string(hostile).unwrap();
        let safe = escape_json(&text);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
        let safe = escape_html(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{2028}']), "{safe}");
        assert!(safe.starts_with("&lt;/script&gt;"), "{safe}");
    }
}

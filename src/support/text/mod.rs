//! Text for terminals and files: counts with a noun, and escaping of untrusted text.

pub(crate) mod cut;
pub(crate) mod escape;
pub(crate) mod json_difference;
pub(crate) mod letters;
pub(crate) mod markdown;
pub(crate) mod near_name;
pub(crate) mod shell_word;

use unicode_width::UnicodeWidthChar as _;

/// Returns true if a text has no visible character: none at all, or only white space, control characters
/// and characters without width, such as U+200B.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.width().unwrap_or(0) == 0)
}

/// Formats a count with its noun.
pub fn format_count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Escapes untrusted text for one line of a terminal: control characters, direction marks and line
/// separators.
pub fn escape_control_chars(text: &str) -> String {
    let is_direction_mark = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_direction_mark(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns the first characters of an untrusted text, escaped for one line of a terminal.
pub(crate) fn escape_start(text: &str, characters: usize) -> String {
    escape_control_chars(&text.chars().take(characters).collect::<String>())
}

/// Escapes the control characters of a text of several lines for a terminal, except line breaks and
/// tabs.
pub fn escape_for_terminal(text: &str) -> String {
    let parts = text.split_inclusive(['\n', '\t']).map(|part| {
        let end = part.len() - usize::from(part.ends_with(['\n', '\t']));
        let (part, end) = part.split_at(end);
        escape_control_chars(part) + end
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_visible_characters_is_blank() {
        for blank in ["", " \n\t\u{a0}", "\u{200b}", "\u{2060}\u{feff}", "\0", "\u{e0041}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for visible in [".", "\u{200b}a", "\u{2764}\u{fe0f}", "\u{3c9}\u{301}"] {
            assert!(!is_blank(visible), "{visible:?}");
        }
    }

    #[test]
    fn lines_and_tabs_stay_on_a_terminal() {
        let text = "a\tb\r\n\u{1b}[2Jc\u{9b}0m\n\n肝";
        assert_eq!(escape_for_terminal(text), "a\tb\\r\n\\u{1b}[2Jc\\u{9b}0m\n\n肝");
    }
}

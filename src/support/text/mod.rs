//! Text for terminals and Markdown: counts with a noun, and escaping of untrusted text.

pub(crate) mod escape;

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

/// Escapes untrusted text for Markdown: like [`escape_control_chars`], and also `<`.
pub fn escape_markdown(text: &str) -> String {
    escape_control_chars(text).replace('<', "&lt;")
}

/// Escapes untrusted text at the start of a Markdown block: like [`escape_markdown`], and also a
/// first character that would start a list, a heading or a quote.
pub fn escape_markdown_start(text: &str) -> String {
    let escaped = escape_markdown(text);
    if escaped.starts_with(['*', '-', '+', '#', '>']) { format!("\\{escaped}") } else { escaped }
}

/// Escapes untrusted text for Markdown. Its lines stay separate, empty lines end a paragraph, and
/// lines that start with `- ` are items of a list.
pub fn escape_markdown_lines(text: &str) -> String {
    let mut escaped = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek();
        if let Some(item) = line.strip_prefix("- ") {
            escaped.extend(["- ", &escape_markdown(item)]);
        } else {
            escaped += &escape_markdown_start(line);
            let is_broken = next.is_some_and(|next| !next.is_empty() && !next.starts_with("- "));
            if is_broken && !line.is_empty() {
                // Two trailing spaces are a line break in Markdown.
                escaped += "  ";
            }
        }
        if next.is_some() {
            escaped.push('\n');
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_text_keeps_its_marks_and_lines() {
        assert_eq!(escape_markdown_start("*  few < 30"), "\\*  few &lt; 30");
        assert_eq!(escape_markdown_start("a * b"), "a * b");
        assert_eq!(escape_markdown_lines("a\n* b\n\nc"), "a  \n\\* b\n\nc");
        assert_eq!(escape_markdown_lines("a\n- <b\n- c\nd"), "a\n- &lt;b\n- c\nd");
    }
}

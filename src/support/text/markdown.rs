//! Escapes untrusted text for Markdown: it cannot contain links, images, HTML or code blocks, and it
//! stays in its cell, item or paragraph.

use super::escape_control_chars;

/// Characters that a table cell never contains unescaped.
const CELL_MARKS: [char; 3] = ['`', '~', '|'];
/// First characters of lists, headings, quotes, code blocks, tables, rules and link definitions.
const BLOCK_STARTS: [char; 11] = ['*', '-', '+', '#', '>', '[', '`', '~', '|', '=', '_'];

/// Escapes untrusted text within a line of Markdown: control characters, HTML, links, images and
/// addresses that would become links.
pub(crate) fn escape_markdown(text: &str) -> String {
    let text = escape_control_chars(text).replace('<', "&lt;");
    // A link or an image needs its brackets without a character between them.
    let text = text.replace("](", "]\\(").replace("][", "]\\[").replace("://", "\\://");
    escape_www(&text)
}

/// Escapes untrusted text for a cell of a table: like [`escape_markdown`], and also all marks of
/// code, emphasis and cells.
pub(crate) fn escape_markdown_cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut previous = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        // An underscore within a word and a single asterisk are no emphasis, and a backslash before
        // a letter is no escape.
        let is_mark = match c {
            '*' => !(previous.is_whitespace() && next.is_whitespace()),
            '_' => !(previous.is_alphanumeric() && next.is_alphanumeric()),
            '\\' => next.is_ascii_punctuation(),
            c => CELL_MARKS.contains(&c),
        };
        if is_mark {
            escaped.push('\\');
        }
        escaped.push(c);
        previous = c;
    }
    escape_markdown(&escaped)
}

/// Escapes untrusted text at the start of a Markdown block: like [`escape_markdown`], and also a
/// first character that would start another block.
pub(crate) fn escape_markdown_start(text: &str) -> String {
    let escaped = escape_markdown(text);
    // Spaces at the start could make a code block.
    let escaped = escaped.trim_start();
    let rest = escaped.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < escaped.len() && rest.starts_with(['.', ')']);
    if is_numbered && rest.chars().nth(1).is_none_or(char::is_whitespace) {
        let (digits, rest) = escaped.split_at(escaped.len() - rest.len());
        return format!("{digits}\\{rest}");
    }
    if escaped.starts_with(BLOCK_STARTS) { format!("\\{escaped}") } else { escaped.to_owned() }
}

/// Escapes untrusted text for Markdown. Its lines stay separate, empty lines end a paragraph, and
/// lines that start with `- ` are items of a list.
pub(crate) fn escape_markdown_lines(text: &str) -> String {
    let mut escaped = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek();
        if let Some(item) = line.strip_prefix("- ") {
            escaped.extend(["- ", &escape_markdown_start(item)]);
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

/// Escapes the dot of `www.`, which GitHub turns into a link, in any case of its letters.
fn escape_www(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut copied = 0;
    for (i, _) in text.to_ascii_lowercase().match_indices("www.") {
        let dot = i + "www".len();
        escaped.extend([text.get(copied..dot).unwrap_or_default(), "\\"]);
        copied = dot;
    }
    escaped + text.get(copied..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_images_and_html_become_text() {
        for (text, expected) in [
            ("[x](http://a.b)", "[x]\\(http\\://a.b)"),
            ("![x](a.png)", "![x]\\(a.png)"),
            ("[x][y]", "[x]\\[y]"),
            ("see HTTPS://a or Www.a.b, www.c", "see HTTPS\\://a or Www\\.a.b, www\\.c"),
            ("<img src=x>", "&lt;img src=x>"),
            ("0.52 [0.40, 0.61]", "0.52 [0.40, 0.61]"),
            ("a\nb\u{1b}", "a\\nb\\u{1b}"),
        ] {
            assert_eq!(escape_markdown(text), expected);
        }
    }

    #[test]
    fn text_stays_in_its_cell() {
        for (text, expected) in [
            ("a|b", "a\\|b"),
            // A backslash before the bar must not escape the escape.
            ("a\\|b", "a\\\\\\|b"),
            ("`a` **b** ~~c~~", "\\`a\\` \\*\\*b\\*\\* \\~\\~c\\~\\~"),
            ("mri * few", "mri * few"),
            ("mri *", "mri *"),
            ("_a_ llava_med_v1", "\\_a\\_ llava_med_v1"),
            ("[x\\](http://a)", "[x\\\\]\\(http\\://a)"),
            ("c:\\dir", "c:\\dir"),
            ("a\\", "a\\"),
        ] {
            assert_eq!(escape_markdown_cell(text), expected);
        }
    }

    #[test]
    fn lines_start_no_other_block() {
        assert_eq!(escape_markdown_start("*  few < 30"), "\\*  few &lt; 30");
        assert_eq!(escape_markdown_start("a * b"), "a * b");
        for (text, expected) in [
            ("```", "\\```"),
            ("    code", "code"),
            ("  # a", "\\# a"),
            ("[x]: http://a", "\\[x]: http\\://a"),
            ("1. a", "1\\. a"),
            ("12.5 %", "12.5 %"),
            ("---", "\\---"),
        ] {
            assert_eq!(escape_markdown_start(text), expected);
        }
        assert_eq!(escape_markdown_lines("a\n* b\n\nc"), "a  \n\\* b\n\nc");
        assert_eq!(escape_markdown_lines("a\n- <b\n- [c]: d\nd"), "a\n- &lt;b\n- \\[c]: d\nd");
    }
}

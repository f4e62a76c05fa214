//! Text for terminals and Markdown: counts with their noun, and untrusted text on one line.

/// A count with its noun.
pub fn plural(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// Escapes untrusted text for one line of a terminal: control characters, direction marks and line separators.
pub fn printable(text: &str) -> String {
    let is_direction_mark = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_direction_mark(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Escapes untrusted text as [`printable`] does, and `<` for Markdown that a browser may show.
pub fn markdown(text: &str) -> String {
    printable(text).replace('<', "&lt;")
}

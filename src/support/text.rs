//! Text for terminals and Markdown: counts with their noun, and untrusted text on one line.

/// A count with its noun.
pub fn plural(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// A text on one line of a terminal: control characters, which could move its cursor, and marks that turn
/// the direction of what follows or end its line, are escaped.
pub fn printable(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// A text as [`printable`], for a Markdown file that a browser may show: a name cannot be an element of its page.
pub fn markdown(text: &str) -> String {
    printable(text).replace('<', "&lt;")
}

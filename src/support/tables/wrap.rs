//! Line breaking by display width.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

/// Characters after which a word that is too long for a line is broken.
const BREAKS: [char; 7] = ['/', '-', '_', '.', ':', ',', '\\'];

/// Stands for a space at which no line is broken.
const NO_BREAK: char = '\u{a0}';

/// Returns `text` with every space marked that no line may end at: before `%` and within brackets.
pub(super) fn bind(text: &str) -> String {
    let mut bound = String::with_capacity(text.len());
    let mut in_brackets = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '[' => in_brackets = text.contains(']'),
            ']' => in_brackets = false,
            _ => {}
        }
        let is_bound = c == ' ' && (in_brackets || rest.peek() == Some(&'%'));
        bound.push(if is_bound { NO_BREAK } else { c });
    }
    bound
}

/// Returns the width of the longest word of a text, in terminal columns. [`bind`] marks the spaces within words.
pub(super) fn longest_word(bound: &str) -> usize {
    let words = bound.split(' ').map(UnicodeWidthStr::width);
    words.max().unwrap_or(0)
}

/// Breaks a text into lines of at most `width` terminal columns, at spaces where possible. Spaces at the start
/// are kept; all lines but the first are indented by `hanging` more.
pub(super) fn wrap(bound: &str, width: usize, hanging: usize) -> Vec<String> {
    let text = bound.trim_start_matches(' ');
    let indent = (bound.len() - text.len()).min(width / 2);
    let hanging = if width >= 4 * (indent + hanging) {
        indent + hanging
    } else {
        indent
    };
    let mut lines = Vec::new();
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    for word in text.split(' ') {
        let mut word = word;
        let gap = usize::from(!is_empty);
        if !is_empty && line.width() + gap + word.width() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(hanging)));
            is_empty = true;
        }
        // A word that is longer than a line.
        while line.width() + word.width() > width && is_empty {
            let (start, end) = break_word(word, width.saturating_sub(line.width()));
            if end.is_empty() {
                break;
            }
            line.push_str(start);
            lines.push(std::mem::replace(&mut line, " ".repeat(hanging)));
            word = end;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    let plain = |line: String| line.trim_end().replace(NO_BREAK, " ");
    lines.into_iter().map(plain).collect()
}

/// Splits a word so that its start is at most `width` wide: after punctuation if there is any in the second
/// half of it.
fn break_word(word: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let mut hard = word.len();
    let mut soft = None;
    for (at, c) in word.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width && at > 0 {
            hard = at;
            break;
        }
        if BREAKS.contains(&c) && 2 * used >= width {
            soft = Some(at + c.len_utf8());
        }
    }
    word.split_at(soft.filter(|at| *at <= hard).unwrap_or(hard))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        wrap(&bind(text), width, 2)
    }

    #[test]
    fn lines_break_at_spaces() {
        let text = "mean signed error (judge - label)";
        let expected = ["mean signed", "  error", "  (judge -", "  label)"];
        assert_eq!(lines(text, 12), expected);
        assert_eq!(lines("  quadratic kappa", 12), ["  quadratic", "  kappa"]);
    }

    #[test]
    fn intervals_and_percentages_stay_together() {
        let expected = ["12.5 %", "[10.1, 14.0]"];
        assert_eq!(wrap(&bind("12.5 % [10.1, 14.0]"), 12, 0), expected);
    }

    #[test]
    fn long_words_break_after_punctuation() {
        let name = "medical/llava-v1.6-mistral-7b";
        assert_eq!(wrap(name, 16, 0), ["medical/llava-", "v1.6-mistral-7b"]);
        assert_eq!(wrap("aaaaaaaaaa", 4, 0), ["aaaa", "aaaa", "aa"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(wrap("肝脏肝脏肝", 4, 0), ["肝脏", "肝脏", "肝"]);
        assert_eq!(wrap("肝", 1, 0), ["肝"]);
    }
}

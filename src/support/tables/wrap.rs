//! Line breaking by display width.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

/// Characters after which a too long word may be broken.
const BREAK_AFTER: [char; 7] = ['/', '-', '_', '.', ':', ',', '\\'];

/// Character that replaces a space where no line may break.
const NO_BREAK_SPACE: char = '\u{a0}';

/// Replaces spaces where no line may break with [`NO_BREAK_SPACE`]: before `%` and within brackets.
pub(super) fn protect_spaces(text: &str) -> String {
    let mut protected = String::with_capacity(text.len());
    let mut in_brackets = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '[' => in_brackets = text.contains(']'),
            ']' => in_brackets = false,
            _ => {}
        }
        let is_protected = c == ' ' && (in_brackets || rest.peek() == Some(&'%'));
        protected.push(if is_protected { NO_BREAK_SPACE } else { c });
    }
    protected
}

/// Returns the width of the longest word of a text, in terminal columns.
pub(super) fn longest_word(text: &str) -> usize {
    let words = text.split(' ').map(UnicodeWidthStr::width);
    words.max().unwrap_or(0)
}

/// Breaks a text into lines of at most `width` terminal columns, at spaces where possible.
///
/// Keeps the indentation of the text. Later lines have `hanging` additional spaces. Converts the
/// output of [`protect_spaces`] back to normal spaces.
pub(crate) fn wrap(text: &str, width: usize, hanging: usize) -> Vec<String> {
    let unindented = text.trim_start_matches(' ');
    let indent = (text.len() - unindented.len()).min(width / 2);
    let hanging = if width >= 4 * (indent + hanging) { indent + hanging } else { indent };
    let mut lines = Vec::new();
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    for word in unindented.split(' ') {
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
    let restore_spaces = |line: String| line.trim_end().replace(NO_BREAK_SPACE, " ");
    lines.into_iter().map(restore_spaces).collect()
}

/// Splits a word so that its start is at most `width` wide, preferably after punctuation in the
/// second half of the start.
fn break_word(word: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let mut hard_break = word.len();
    let mut soft_break = None;
    for (i, c) in word.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width && i > 0 {
            hard_break = i;
            break;
        }
        if BREAK_AFTER.contains(&c) && 2 * used >= width {
            soft_break = Some(i + c.len_utf8());
        }
    }
    word.split_at(soft_break.filter(|i| *i <= hard_break).unwrap_or(hard_break))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        wrap(&protect_spaces(text), width, 2)
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
        assert_eq!(wrap(&protect_spaces("12.5 % [10.1, 14.0]"), 12, 0), expected);
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

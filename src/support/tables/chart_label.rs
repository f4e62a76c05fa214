//! Labels of charts: broken into lines, so that none is cut.

use std::fmt::Write as _;

use crate::support::text::escape::escape_html;

/// The height of a line of a label.
pub(super) const LABEL_LINE_HEIGHT: f64 = 15.0;
/// Maximum lines of a label.
const MAX_LABEL_LINES: usize = 6;

/// Writes the lines of a label; `x` and `y` are the start and the baseline of the first.
pub(super) fn draw_label(svg: &mut String, lines: &[String], [x, y]: [f64; 2]) {
    for (i, line) in lines.iter().enumerate() {
        let y = y + LABEL_LINE_HEIGHT * i as f64;
        let line = escape_html(line);
        let _ = write!(svg, "<text class=\"name\" x=\"{x}\" y=\"{y:.1}\">{line}</text>");
    }
}

/// Breaks a label into lines of at most this width, after a space, a slash, a hyphen or an underscore
/// if there is one in the second half of the line. A label of more than [`MAX_LABEL_LINES`] loses
/// its middle, because names and paths differ at their start and end.
pub(super) fn wrap_label(label: &str, max_width: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut width = 0.0;
    for c in label.chars() {
        if width + text_width(c) > max_width {
            let is_break = |c: char| matches!(c, ' ' | '/' | '-' | '_');
            let end = line.rfind(is_break).map(|at| at + 1).filter(|at| *at > line.len() / 2);
            let rest = line.split_off(end.unwrap_or(line.len()));
            lines.push(std::mem::replace(&mut line, rest));
            width = line.chars().map(text_width).sum();
        }
        line.push(c);
        width += text_width(c);
    }
    lines.push(line);
    if lines.len() > MAX_LABEL_LINES {
        let end = lines.split_off(lines.len() - MAX_LABEL_LINES / 2);
        lines.truncate(MAX_LABEL_LINES / 2);
        lines.last_mut().into_iter().for_each(|line| line.push('…'));
        lines.extend(end);
    }
    lines
}

/// Estimates the width of a character at 12 pixels, rather too large: fonts differ.
fn text_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 4.0,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '—' => 11.5,
        'A'..='Z' => 9.0,
        c if c < '\u{2e80}' => 7.2,
        // Chinese, Japanese and Korean characters, and symbols.
        _ => 13.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_are_wrapped_and_complete() {
        let name = "owner/llava-v1.6-mistral-7b-finetuned_on_WIDE-MEDICAL-IMAGES/checkpoint-12000";
        let lines = wrap_label(name, 300.0);
        assert!(lines.len() > 1);
        assert_eq!(lines.concat(), name);
        let width = |line: &String| line.chars().map(text_width).sum::<f64>();
        assert!(lines.iter().all(|line| width(line) <= 300.0), "{lines:?}");
        let lines = wrap_label(&"W".repeat(1000), 300.0);
        assert_eq!(lines.len(), MAX_LABEL_LINES);
        assert_eq!(wrap_label("", 300.0), [""]);
    }
}

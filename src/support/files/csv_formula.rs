//! Protection against CSV injection: adds an apostrophe before text that a spreadsheet could run as
//! a formula, as OWASP recommends (CSV injection; ASVS 5, 1.2.10).

use std::borrow::Cow;

/// First characters of formulas with their full-width forms, and control characters that hide them.
const FORMULA_STARTS: [char; 12] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\0', '＝', '＋', '－', '＠'];

/// Adds an apostrophe before a cell that a spreadsheet could run. Numbers and single characters are
/// not formulas.
pub(crate) fn escape_formula(cell: &str) -> Cow<'_, str> {
    if is_formula(cell.trim_start_matches('\'')) {
        Cow::Owned(format!("'{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

/// Reverses [`escape_formula`].
pub(crate) fn unescape_formula(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(text) if is_formula(text.trim_start_matches('\'')) => text,
        _ => cell,
    }
}

fn is_formula(text: &str) -> bool {
    text.starts_with(FORMULA_STARTS)
        && text.chars().nth(1).is_some()
        && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_formulas_round_trip() {
        for text in [
            "=HYPERLINK(\"http://x\")",
            "+1+1",
            "-2+3+cmd|' /C calc'!A0",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "- no fracture",
            "＝1+1",
            "'=1",
        ] {
            let cell = escape_formula(text);
            assert_eq!(cell, format!("'{text}"));
            assert_eq!(unescape_formula(&cell), text);
        }
        for text in
            ["", "=", "-", ">", "-3.5", "+2", "-1e-7", "5", "a=1", "'tis", " =1", "'", "no", "''"]
        {
            assert_eq!(escape_formula(text), text);
            assert_eq!(unescape_formula(text), text);
        }
    }
}

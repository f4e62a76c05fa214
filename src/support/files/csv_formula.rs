//! Cells of a table that a spreadsheet would run: a text that begins as a formula does. They are written behind
//! an apostrophe, as OWASP's page on CSV injection and its verification standard (ASVS 5, 1.2.10) ask.

use std::borrow::Cow;

/// What a formula begins with, full-width forms of other keyboards too, and what hides such a beginning.
const BEGINNINGS: [char; 12] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\0', '＝', '＋', '－', '＠',
];

/// A cell as a table holds it: an apostrophe before a text that a spreadsheet could run. Numbers stay numbers,
/// and a sign alone, as an order has it, is no formula.
pub(crate) fn guarded(cell: &str) -> Cow<'_, str> {
    if is_run(cell.trim_start_matches('\'')) {
        Cow::Owned(format!("'{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

/// What [`guarded`] was given.
pub(crate) fn bare(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(text) if is_run(text.trim_start_matches('\'')) => text,
        _ => cell,
    }
}

fn is_run(text: &str) -> bool {
    text.starts_with(BEGINNINGS) && text.chars().nth(1).is_some() && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_come_back() {
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
            let cell = guarded(text);
            assert_eq!(cell, format!("'{text}"));
            assert_eq!(bare(&cell), text);
        }
        for text in [
            "", "=", "-", ">", "-3.5", "+2", "-1e-7", "5", "a=1", "'tis", " =1", "'", "no", "''",
        ] {
            assert_eq!(guarded(text), text);
            assert_eq!(bare(text), text);
        }
    }
}

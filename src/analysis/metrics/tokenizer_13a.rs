//! Tokenization for BLEU: `13a` of sacrebleu, which reproduces `mteval-v13a.pl`
//! (reference: `tokenizer_13a.py` and `tokenizer_re.py` of sacrebleu 2.6).

use super::words::{is_space, split};

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let line = text.trim_end_matches(is_space);
    let line = line.replace("<skipped>", "");
    let line = line.replace("-\n", "").replace('\n', " ");
    let line = if line.contains('&') {
        let line = line.replace("&quot;", "\"").replace("&amp;", "&");
        line.replace("&lt;", "<").replace("&gt;", ">")
    } else {
        line
    };
    tokens_apart(&format!(" {line} "))
}

/// Splits a line without SGML entities into tokens (`TokenizerRegexp`). A period at either end of the line is
/// separated only if a space is beyond it.
pub(super) fn tokens_apart(line: &str) -> Vec<String> {
    let mut spread = String::with_capacity(2 * line.len());
    for c in line.chars() {
        if is_apart(c) {
            spread.extend([' ', c, ' ']);
        } else {
            spread.push(c);
        }
    }
    let is_point = |c| c == '.' || c == ',';
    // Periods between two digits stay; a dash after a digit is separated.
    let before = rewritten(&spread, |a, b| {
        (!a.is_ascii_digit() && is_point(b)).then_some([a, ' ', b, ' '])
    });
    let after = rewritten(&before, |a, b| {
        (is_point(a) && !b.is_ascii_digit()).then_some([' ', a, ' ', b])
    });
    let dashes = rewritten(&after, |a, b| {
        (a.is_ascii_digit() && b == '-').then_some([a, ' ', b, ' '])
    });
    split(&dashes).map(str::to_owned).collect()
}

/// Returns true for characters that are always separate tokens: ASCII punctuation except `' , - .`.
fn is_apart(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, '\'' | ',' | '-' | '.')
}

/// Replaces pairs of adjacent characters by the result of a rule. Matches do not overlap, as in a regular
/// expression substitution.
fn rewritten(text: &str, rule: impl Fn(char, char) -> Option<[char; 4]>) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars();
    while let Some(a) = rest.next() {
        let mut ahead = rest.clone();
        match ahead.next().and_then(|b| rule(a, b)) {
            Some(instead) => {
                out.extend(instead);
                rest = ahead;
            }
            None => out.push(a),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_is_separated_and_numbers_stay() {
        for (text, expected) in [
            ("It's 3.5 cm, left-sided.", "It's 3.5 cm , left-sided ."),
            ("(T2-weighted) 1-2", "( T2 - weighted ) 1 - 2"),
            ("a..b,.c", "a . . b , . c"),
            ("&quot;x&quot; &amp;lt;", "\" x \" <"),
            ("end-\nline\nnext \n", "endline next"),
            ("…？ 肺。", "…？ 肺。"),
            (" . ", "."),
            ("", ""),
        ] {
            assert_eq!(tokens(text).join(" "), expected, "{text}");
        }
    }
}

//! Tokenization for BLEU: `13a` of sacrebleu, which reproduces `mteval-v13a.pl`
//! (reference: `tokenizer_13a.py` and `tokenizer_re.py` of sacrebleu 2.6).

use super::words::{is_space, split};

/// Splits a text into tokens.
pub(crate) fn tokenize(text: &str) -> Vec<String> {
    let line = text.trim_end_matches(is_space);
    let line = line.replace("<skipped>", "");
    let line = line.replace("-\n", "").replace('\n', " ");
    let line = if line.contains('&') {
        let line = line.replace("&quot;", "\"").replace("&amp;", "&");
        line.replace("&lt;", "<").replace("&gt;", ">")
    } else {
        line
    };
    split_tokens(&format!(" {line} "))
}

/// Splits a line without SGML entities into tokens (`TokenizerRegexp`). A period at an end of
/// the line is separated only if a space lies between it and that end.
pub(crate) fn split_tokens(line: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(2 * line.len());
    for c in line.chars() {
        if is_separate_token(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    let is_period_or_comma = |c| c == '.' || c == ',';
    // Periods and commas between two digits stay; a dash after a digit is separated.
    let split_before = replace_pairs(&spaced, |a, b| {
        (!a.is_ascii_digit() && is_period_or_comma(b)).then_some([a, ' ', b, ' '])
    });
    let split_after = replace_pairs(&split_before, |a, b| {
        (is_period_or_comma(a) && !b.is_ascii_digit()).then_some([' ', a, ' ', b])
    });
    let split_dashes = replace_pairs(&split_after, |a, b| {
        (a.is_ascii_digit() && b == '-').then_some([a, ' ', b, ' '])
    });
    split(&split_dashes).map(str::to_owned).collect()
}

/// Returns true for characters that are always separate tokens: ASCII punctuation except `' , - .`.
fn is_separate_token(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, '\'' | ',' | '-' | '.')
}

/// Replaces pairs of adjacent characters by the result of a rule. Matches do not overlap, as in a
/// regular expression substitution.
fn replace_pairs(text: &str, rule: impl Fn(char, char) -> Option<[char; 4]>) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars();
    while let Some(a) = rest.next() {
        let mut ahead = rest.clone();
        match ahead.next().and_then(|b| rule(a, b)) {
            Some(replacement) => {
                out.extend(replacement);
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
            assert_eq!(tokenize(text).join(" "), expected, "{text}");
        }
    }
}

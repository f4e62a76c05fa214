//! The words of BLEU: the tokenization `13a` of sacrebleu, which is that of `mteval-v13a.pl`
//! (reference: `tokenizer_13a.py` and `tokenizer_re.py` of sacrebleu 2.6).

use super::words::{is_space, split};

/// The tokens of a text.
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

/// The tokens of a line, without the marks of SGML (`TokenizerRegexp`). A point at either end of the line is cut off
/// only where a space stands beyond it.
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
    // Points stay where a digit stands on both sides, and a dash is cut off a digit before it.
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

/// A sign that is always a token of its own: ASCII's, but for letters, digits and `' , - .`.
fn is_apart(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, '\'' | ',' | '-' | '.')
}

/// The text with pairs of neighbours exchanged for what the rule makes of them. As in a substitution by
/// regular expression, what was matched takes no part in the next match.
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
    fn signs_are_cut_off_and_numbers_stay() {
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

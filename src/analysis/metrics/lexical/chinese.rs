//! Chinese texts: each character counts as a word, because there are no spaces between words.

use super::words::words;

/// Characters that sacrebleu's tokenizer `zh` separates (reference: `tokenizer_zh.py` of sacrebleu
/// 2.6): ideographs, radicals, strokes, full-width forms and symbols. Two of its ranges have
/// five-digit escapes. Python reads four digits, so they cover dashes, arrows and mathematical
/// symbols instead of rare ideographs.
const SEPARATED_RANGES: [(char, char); 22] = [
    ('\u{2001}', '\u{2a6d}'),
    ('\u{2e80}', '\u{2eff}'),
    ('\u{2f00}', '\u{2fdf}'),
    ('\u{2f81}', '\u{2fa1}'),
    ('\u{2ff0}', '\u{2fff}'),
    ('\u{3000}', '\u{303f}'),
    ('\u{3100}', '\u{312f}'),
    ('\u{31a0}', '\u{31bf}'),
    ('\u{31c0}', '\u{31ef}'),
    ('\u{3200}', '\u{32ff}'),
    ('\u{3300}', '\u{33ff}'),
    ('\u{3400}', '\u{4db5}'),
    ('\u{4e00}', '\u{9fa5}'),
    ('\u{9fa6}', '\u{9fbb}'),
    ('\u{f900}', '\u{fa2d}'),
    ('\u{fa30}', '\u{fa6a}'),
    ('\u{fa70}', '\u{fad9}'),
    ('\u{fe10}', '\u{fe1f}'),
    ('\u{fe30}', '\u{fe4f}'),
    ('\u{ff00}', '\u{ffef}'),
    ('\u{2600}', '\u{26ff}'),
    ('\u{2700}', '\u{27bf}'),
];

/// Characters that negate the next word.
const NEGATIONS: [&str; 5] = ["不", "没", "无", "非", "未"];

/// Puts spaces around every character of [`SEPARATED_RANGES`].
pub(crate) fn space_characters(text: &str) -> String {
    let is_separated =
        |c: char| SEPARATED_RANGES.iter().any(|(from, to)| (*from..=*to).contains(&c));
    let mut spaced = String::with_capacity(3 * text.len());
    for c in text.trim().chars() {
        if is_separated(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced
}

/// Returns the words and characters of a text, without punctuation.
pub(crate) fn characters(text: &str) -> Vec<String> {
    let mut words = words(&space_characters(text));
    words.retain(|word| word.chars().any(char::is_alphanumeric));
    words
}

/// Returns true if a text has an ideograph.
pub(crate) fn has_ideograph(text: &str) -> bool {
    let is_ideograph = |c| matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
    text.contains(is_ideograph)
}

/// Returns the words of a text: its characters if the reference is Chinese.
pub fn words_as_in(reference: &str, text: &str) -> Vec<String> {
    if has_ideograph(reference) { characters(text) } else { words(text) }
}

/// Returns true if the answer contains the reference (without a final `的`) and does not negate it.
/// A negation that is part of the reference is allowed.
pub(crate) fn is_correct(answer: &[String], reference: &[String]) -> bool {
    let stem = match reference {
        [stem @ .., last] if last == "的" && !stem.is_empty() => stem,
        all => all,
    };
    let is_negation = |word: &String| NEGATIONS.contains(&word.as_str());
    let parts = answer.windows(stem.len().max(1)).enumerate();
    let mut matches = parts.filter(|(_, part)| *part == stem);
    matches.any(|(index, _)| {
        let before = index.checked_sub(1).and_then(|i| answer.get(i));
        !before.is_some_and(is_negation)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_words_without_punctuation() {
        for (text, expected) in
            [("左下肺，T1加权。", "左 下 肺 t1 加 权"), ("X光 — the CT", "x 光 ct"), ("……", "")]
        {
            assert_eq!(characters(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn negated_answers_are_wrong() {
        let correct = |answer, reference| is_correct(&characters(answer), &characters(reference));
        for (answer, reference) in [
            ("是的", "是"),
            ("是", "是的"),
            ("图像不包含肝脏。", "不包含"),
            ("没有", "没有"),
            ("在左侧", "左侧"),
            ("CT", "CT"),
        ] {
            assert!(correct(answer, reference), "{answer} for {reference}");
        }
        for (answer, reference) in [
            ("不是", "是的"),
            ("没有异常", "有"),
            ("包含", "不包含"),
            ("不包含", "包含"),
            ("右侧", "左侧"),
            ("", "是"),
        ] {
            assert!(!correct(answer, reference), "{answer} for {reference}");
        }
    }
}

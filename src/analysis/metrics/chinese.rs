//! Texts in Chinese, whose words no space divides: every character is taken for one.

use super::words::words;

/// What sacrebleu's tokenizer `zh` sets apart (reference: `tokenizer_zh.py` of sacrebleu 2.6): ideographs,
/// their radicals and strokes, full-width signs and symbols. Two of its ranges are written with five digits
/// where Python reads four, and so hold dashes, arrows and mathematical signs in place of rare ideographs.
const RANGES: [(char, char); 22] = [
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

/// Characters that turn the meaning of what follows.
const NEGATIONS: [&str; 5] = ["不", "没", "无", "非", "未"];

/// The text with spaces about every such character.
pub(super) fn apart(text: &str) -> String {
    let is_one = |c: char| RANGES.iter().any(|(from, to)| (*from..=*to).contains(&c));
    let mut spread = String::with_capacity(3 * text.len());
    for c in text.trim().chars() {
        if is_one(c) {
            spread.extend([' ', c, ' ']);
        } else {
            spread.push(c);
        }
    }
    spread
}

/// The words and characters of a text, signs left out.
pub(super) fn characters(text: &str) -> Vec<String> {
    let mut all = words(&apart(text));
    all.retain(|word| word.chars().any(char::is_alphanumeric));
    all
}

/// Whether an answer to a closed question is right: the reference stands in it, `的` at its end left aside, and
/// no negation before it that the reference does not have.
pub(super) fn is_right(answer: &[String], reference: &[String]) -> bool {
    let wanted = match reference {
        [most @ .., last] if last == "的" && !most.is_empty() => most,
        all => all,
    };
    let is_negation = |word: &String| NEGATIONS.contains(&word.as_str());
    let places = answer.windows(wanted.len().max(1)).enumerate();
    let mut places = places.filter(|(_, part)| *part == wanted);
    places.any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| answer.get(at));
        !before.is_some_and(is_negation)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_words_and_signs_are_none() {
        for (text, expected) in [
            ("左下肺，T1加权。", "左 下 肺 t1 加 权"),
            ("X光 — the CT", "x 光 ct"),
            ("……", ""),
        ] {
            assert_eq!(characters(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_negation_is_heard() {
        let right = |answer, reference| is_right(&characters(answer), &characters(reference));
        for (answer, reference) in [
            ("是的", "是"),
            ("是", "是的"),
            ("图像不包含肝脏。", "不包含"),
            ("没有", "没有"),
            ("在左侧", "左侧"),
            ("CT", "CT"),
        ] {
            assert!(right(answer, reference), "{answer} for {reference}");
        }
        for (answer, reference) in [
            ("不是", "是的"),
            ("没有异常", "有"),
            ("包含", "不包含"),
            ("不包含", "包含"),
            ("右侧", "左侧"),
            ("", "是"),
        ] {
            assert!(!right(answer, reference), "{answer} for {reference}");
        }
    }
}

//! The two figures that papers on medical visual question answering report, as the published code of
//! LLaVA-Med computes them: for comparison with papers, faults included.
//!
//! Reference: `llava/eval/run_eval.py`, `eval_metrics/{evaluate_metrics,utils,glossary}.py` at commit
//! ad758b6, but for the list of contractions (`dont` for `don't`). What it does otherwise than it says:
//! a closed answer that says yes or no and not what the reference says is left out of the mean instead of
//! counting as wrong, `no` is looked for inside of words, and recall counts a word of the reference as often
//! as the answer repeats it.

use std::collections::HashMap;

use super::words::split;

/// Signs that are taken out of words or exchanged for spaces.
const SIGNS: [char; 21] = [
    ';', '/', '[', ']', '"', '{', '}', '(', ')', '=', '+', '\\', '_', '-', '>', '<', '@', '`', ',',
    '?', '!',
];
/// How many points are taken out: a flag of the regular expression stands where its count belongs.
const POINTS: usize = 32;
const NUMBERS: [(&str, &str); 12] = [
    ("none", "0"),
    ("zero", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
];

/// A text as the code compares it.
pub(super) fn normal(text: &str) -> String {
    let grouped = has_grouped_number(text);
    let mut plain = text.to_owned();
    for sign in SIGNS {
        let beside = text.contains(&format!("{sign} ")) || text.contains(&format!(" {sign}"));
        let instead = if beside || grouped { "" } else { " " };
        plain = plain.replace(sign, instead);
    }
    let plain = without_points(&plain).to_lowercase();
    let words = split(&plain).map(|word| {
        let number = NUMBERS.iter().find(|(name, _)| *name == word);
        number.map_or(word, |(_, digits)| digits)
    });
    let words: Vec<&str> = words.filter(|w| !["a", "an", "the"].contains(w)).collect();
    words.join(" ").replace(',', "")
}

/// Whether a comma stands between two digits.
fn has_grouped_number(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    chars
        .windows(3)
        .any(|w| w[1] == ',' && w[0].is_ascii_digit() && w[2].is_ascii_digit())
}

/// The text without its first points that no digit follows.
fn without_points(text: &str) -> String {
    let mut left = POINTS;
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let before_digit = rest.peek().is_some_and(char::is_ascii_digit);
        if c == '.' && !before_digit && left > 0 {
            left -= 1;
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Whether a closed answer is right; `None` where the code leaves it out.
pub(super) fn closed(answer: &str, reference: &str) -> Option<bool> {
    let [answer, reference] = [answer, reference].map(|text| normal(&text.to_lowercase()));
    if !answer.contains("yes") && !answer.contains("no") {
        return Some(false);
    }
    answer.contains(&reference).then_some(true)
}

/// The part of the reference's words that an open answer has, a word repeated by the answer being
/// counted again.
pub(super) fn recall(answer: &str, reference: &str) -> f64 {
    let bag = |text: &str| {
        let mut bag: HashMap<String, usize> = HashMap::new();
        for word in split(&normal(&normal(&text.to_lowercase()))) {
            *bag.entry(word.to_owned()).or_default() += 1;
        }
        bag
    };
    let (answer, reference) = (bag(answer), bag(reference));
    let (mut hit, mut missed) = (0, 0);
    for (word, n) in &reference {
        match answer.get(word) {
            Some(said) => hit += said,
            None => missed += n,
        }
    }
    if hit == 0 {
        return 0.0;
    }
    hit as f64 / (hit + missed) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_faults_are_kept() {
        // Wrong, and left out.
        assert_eq!(closed("No, it is not.", "yes"), None);
        // Right by the letters of `normal`.
        assert_eq!(closed("a normal chest", "no"), Some(true));
        assert_eq!(closed("left", "left"), Some(false));
        assert!((recall("left left left", "left lung") - 0.75).abs() < 1e-12);
    }

    #[test]
    fn words_are_normal() {
        for (text, expected) in [
            ("The two-sided, 1,000 cm.", "twosided 1000 cm"),
            ("left-sided 3.5 cm.", "left sided 3.5 cm"),
            ("None of the ten!", "0 of 10"),
        ] {
            assert_eq!(normal(text), expected);
        }
    }
}

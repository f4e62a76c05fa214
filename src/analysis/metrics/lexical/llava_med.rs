//! Closed accuracy and open recall as computed by the published code of LLaVA-Med, with its errors,
//! for comparison with papers on medical visual question answering.
//!
//! Reference: `llava/eval/run_eval.py`, `eval_metrics/{evaluate_metrics,utils,glossary}.py` at
//! commit ad758b6, without the list of contractions (`dont` for `don't`). Its bugs: a closed answer
//! that contains yes or no but contradicts the reference is excluded from the mean instead of
//! counting as wrong; `no` also matches inside words; recall counts a reference word as often as
//! the answer repeats it.

use std::collections::HashMap;

use super::words::split;

/// Punctuation that is removed or replaced by a space.
const PUNCTUATION: [char; 21] = [
    ';', '/', '[', ']', '"', '{', '}', '(', ')', '=', '+', '\\', '_', '-', '>', '<', '@', '`', ',',
    '?', '!',
];
/// Maximum number of removed periods: the code passes `re.UNICODE` (32) as the count of `re.sub`.
const MAX_REMOVED_PERIODS: usize = 32;
const NUMBER_WORDS: [(&str, &str); 12] = [
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

/// Normalises a text like the published code.
pub(crate) fn normalize(text: &str) -> String {
    let is_grouped = has_grouped_number(text);
    let mut plain = text.to_owned();
    for sign in PUNCTUATION {
        let is_next_to_space =
            text.contains(&format!("{sign} ")) || text.contains(&format!(" {sign}"));
        let replacement = if is_next_to_space || is_grouped { "" } else { " " };
        plain = plain.replace(sign, replacement);
    }
    let plain = remove_periods(&plain).to_lowercase();
    let words = split(&plain).map(|word| {
        let number = NUMBER_WORDS.iter().find(|(name, _)| *name == word);
        number.map_or(word, |(_, digits)| digits)
    });
    let words: Vec<&str> = words.filter(|w| !["a", "an", "the"].contains(w)).collect();
    words.join(" ").replace(',', "")
}

/// Returns true if the text has a comma between two digits.
fn has_grouped_number(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    chars.windows(3).any(|w| w[1] == ',' && w[0].is_ascii_digit() && w[2].is_ascii_digit())
}

/// Removes the first [`MAX_REMOVED_PERIODS`] periods that no digit follows.
fn remove_periods(text: &str) -> String {
    let mut remaining = MAX_REMOVED_PERIODS;
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_before_digit = rest.peek().is_some_and(char::is_ascii_digit);
        if c == '.' && !is_before_digit && remaining > 0 {
            remaining -= 1;
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Returns true if a closed answer is correct; `None` if the code excludes it.
pub(crate) fn closed_accuracy(answer: &str, reference: &str) -> Option<bool> {
    let [answer, reference] = [answer, reference].map(|text| normalize(&text.to_lowercase()));
    if !answer.contains("yes") && !answer.contains("no") {
        return Some(false);
    }
    answer.contains(&reference).then_some(true)
}

/// Returns the recall of reference words in an open answer; words that the answer repeats count
/// again.
pub(crate) fn recall(answer: &str, reference: &str) -> f64 {
    let count_words = |text: &str| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for word in split(&normalize(&normalize(&text.to_lowercase()))) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        counts
    };
    let (answer, reference) = (count_words(answer), count_words(reference));
    let (mut matched, mut missed) = (0, 0);
    for (word, n) in &reference {
        match answer.get(word) {
            Some(repeats) => matched += repeats,
            None => missed += n,
        }
    }
    if matched == 0 {
        return 0.0;
    }
    matched as f64 / (matched + missed) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_of_published_code_are_reproduced() {
        // Wrong, but excluded.
        assert_eq!(closed_accuracy("No, it is not.", "yes"), None);
        // Counts as right because `normal` contains `no`.
        assert_eq!(closed_accuracy("a normal chest", "no"), Some(true));
        assert_eq!(closed_accuracy("left", "left"), Some(false));
        assert!((recall("left left left", "left lung") - 0.75).abs() < 1e-12);
    }

    #[test]
    fn text_is_normalised_like_published_code() {
        for (text, expected) in [
            ("The two-sided, 1,000 cm.", "twosided 1000 cm"),
            ("left-sided 3.5 cm.", "left sided 3.5 cm"),
            ("None of the ten!", "0 of 10"),
        ] {
            assert_eq!(normalize(text), expected);
        }
    }
}

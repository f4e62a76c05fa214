//! Word normalisation of the `SQuAD` evaluation: lower case, without ASCII punctuation and
//! articles (reference: `evaluate-v1.1.py` of `SQuAD`, `normalize_answer`).

/// Words that are removed.
const ARTICLES: [&str; 3] = ["a", "an", "the"];

/// Splits a text into normalised words.
pub fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let plain: String = lower.chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let mut without_articles = String::with_capacity(plain.len());
    // Word boundaries are those of Python's `\b`: `a°` contains an article, `ab` does not.
    let is_letter = |c: char| c.is_alphanumeric();
    let mut rest = plain.as_str();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_letter(c) != is_letter(first));
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        without_articles.push_str(if ARTICLES.contains(&run) { " " } else { run });
        rest = after;
    }
    split(&without_articles).map(str::to_owned).collect()
}

/// Splits a text at white space.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|part| !part.is_empty())
}

/// Returns true for white space as in Python's `str.isspace`: Unicode's property and four
/// separators.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_punctuation_and_case_are_ignored() {
        for (text, expected) in [
            ("The left-sided  lung, an effusion.", "leftsided lung effusion"),
            ("A.", ""),
            ("théa a°b the", "théa °b"),
            ("X\u{1c}Y\u{a0}z", "x y z"),
            ("… ÉTÉ ‘a’", "… été ‘ ’"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }
}

//! ROUGE-1, -2 and -L (Lin 2004), as the package `rouge-score` computes them (reference:
//! `rouge_scorer.py` and `tokenize.py` of rouge-score 0.1.2).

use super::overlap::{PrecisionRecall, WordOverlap};
use super::porter::stem;

/// Maximum length of words that are not stemmed.
const MAX_UNSTEMMED: usize = 3;

/// Splits a text into lower-case runs of ASCII letters and digits, optionally stemmed.
pub(crate) fn tokenize(text: &str, stemmed: bool) -> Vec<String> {
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()));
    let runs = runs.filter(|run| !run.is_empty());
    runs.map(
        |word| {
            if stemmed && word.len() > MAX_UNSTEMMED { stem(word) } else { word.to_owned() }
        },
    )
    .collect()
}

/// Computes ROUGE-L: the longest common subsequence relative to both lengths.
pub(crate) fn rouge_l(pair: &WordOverlap) -> PrecisionRecall {
    let (answer, reference) = (&pair.answer, &pair.reference);
    PrecisionRecall::from_counts(
        longest_common_subsequence(answer, reference),
        answer.len(),
        reference.len(),
    )
}

/// Returns the length of the longest common subsequence.
fn longest_common_subsequence(a: &[u32], b: &[u32]) -> usize {
    // Only the last row of the table is needed; `corner` is the cell above and to the left.
    let mut row = vec![0; b.len()];
    for x in a {
        let (mut corner, mut before) = (0, 0);
        for (cell, y) in row.iter_mut().zip(b) {
            let above = *cell;
            *cell = if x == y { corner + 1 } else { above.max(before) };
            (corner, before) = (above, *cell);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_ascii_letters_and_digits() {
        let unstemmed = |text| tokenize(text, false).join(" ");
        assert_eq!(unstemmed("T2-weighted, 3.5 CM; café 肺"), "t2 weighted 3 5 cm caf");
        assert_eq!(tokenize("the lungs are enlarging", true).join(" "), "the lung are enlarg");
    }

    #[test]
    fn rouge_l_matches_hand_calculation() {
        let pair = |a, b| WordOverlap::new(&tokenize(a, false), &tokenize(b, false));
        let scores = rouge_l(&pair("police kill the gunman", "police killed the gunman"));
        assert!((scores.f1 - 0.75).abs() < 1e-12);
        let reordered = rouge_l(&pair("the gunman kill police now", "police killed the gunman"));
        assert!(
            (reordered.precision - 0.4).abs() < 1e-12 && (reordered.recall - 0.5).abs() < 1e-12
        );
        assert_eq!(rouge_l(&pair("", "police")), PrecisionRecall::default());
    }
}

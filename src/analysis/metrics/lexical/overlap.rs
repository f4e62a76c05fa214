//! Overlap of two lists of words, as multisets.

use std::collections::HashMap;

/// Precision, recall and F1. Fields are named because a list of three values is easily misordered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrecisionRecall {
    /// Proportion of the answer that is in the reference, 0 to 1.
    pub precision: f64,
    /// Proportion of the reference that is in the answer, 0 to 1.
    pub recall: f64,
    /// Harmonic mean of both; 0 if both are 0.
    pub f1: f64,
}

impl PrecisionRecall {
    /// Computes the scores from the number of items in the answer, in the reference and in both.
    /// All are 0 for an empty answer.
    pub fn from_counts(common: usize, answer: usize, reference: usize) -> Self {
        let proportion = |total: usize| common as f64 / total.max(1) as f64;
        Self::from_precision_recall(proportion(answer), proportion(reference))
    }

    /// Computes F1 from precision and recall.
    pub fn from_precision_recall(precision: f64, recall: f64) -> Self {
        let sum = precision + recall;
        let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
        Self { precision, recall, f1 }
    }
}

/// Words of an answer and its reference as ids; equal words have equal ids.
#[derive(Clone, Debug, Default)]
pub struct WordOverlap {
    /// Words of the answer.
    pub answer: Vec<u32>,
    /// Words of the reference.
    pub reference: Vec<u32>,
}

impl WordOverlap {
    /// Assigns ids to two lists of words.
    pub fn new<S: AsRef<str>>(answer: &[S], reference: &[S]) -> Self {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut id = |word| {
            let next = known.len() as u32;
            *known.entry(word).or_insert(next)
        };
        Self {
            answer: answer.iter().map(|w| id(w.as_ref())).collect(),
            reference: reference.iter().map(|w| id(w.as_ref())).collect(),
        }
    }

    /// Returns the number of n-grams in both, each with its smaller count.
    pub fn common_ngrams(&self, n: usize) -> usize {
        let (mut answer, mut reference) = (
            sorted_ngrams(&self.answer, n).into_iter().peekable(),
            sorted_ngrams(&self.reference, n).into_iter().peekable(),
        );
        let mut common = 0;
        while let (Some(a), Some(b)) = (answer.peek(), reference.peek()) {
            let order = a.cmp(b);
            common += usize::from(order.is_eq());
            if order.is_le() {
                answer.next();
            }
            if order.is_ge() {
                reference.next();
            }
        }
        common
    }

    /// Returns the overlap of the two multisets of n-grams.
    pub fn ngram_overlap(&self, n: usize) -> PrecisionRecall {
        let count = |words: &[u32]| (words.len() + 1).saturating_sub(n);
        PrecisionRecall::from_counts(
            self.common_ngrams(n),
            count(&self.answer),
            count(&self.reference),
        )
    }
}

fn sorted_ngrams(words: &[u32], n: usize) -> Vec<&[u32]> {
    let mut ngrams: Vec<&[u32]> = words.windows(n.max(1)).collect();
    ngrams.sort_unstable();
    ngrams
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(answer: &str, reference: &str) -> WordOverlap {
        let split = |text| str::split_whitespace(text).collect::<Vec<_>>();
        WordOverlap::new(&split(answer), &split(reference))
    }

    /// Known bugs of published code: `MedEvalKit` unpacks F1, precision and recall in the wrong
    /// order; LLaVA-Med counts a word as often as the answer repeats it.
    #[test]
    fn repeated_words_do_not_raise_recall() {
        let once = pair("left lung base", "left lung").ngram_overlap(1);
        assert!((once.precision - 2.0 / 3.0).abs() < 1e-12);
        assert!((once.recall - 1.0).abs() < 1e-12);
        assert!((once.f1 - 0.8).abs() < 1e-12);
        let often = pair("left left left", "left lung").ngram_overlap(1);
        assert!((often.recall - 0.5).abs() < 1e-12);
        assert!((often.precision - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn ngrams_count_as_often_as_in_both() {
        let pair = pair("a b a b a", "b a b a b");
        assert_eq!(
            (pair.common_ngrams(1), pair.common_ngrams(2), pair.common_ngrams(6)),
            (4, 4, 0)
        );
        assert_eq!(self::pair("", "a").ngram_overlap(1), PrecisionRecall::default());
        assert_eq!(self::pair("a", "").ngram_overlap(2), PrecisionRecall::default());
    }
}

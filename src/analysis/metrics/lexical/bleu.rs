//! BLEU (Papineni et al. 2002), as sacrebleu computes it with one reference: exponential smoothing;
//! BLEU of a single answer uses only the orders up to its length (reference: `bleu.py` of sacrebleu
//! 2.6).

use std::iter::Sum;

use super::overlap::WordOverlap;

/// Maximum n-gram order.
pub(crate) const ORDERS: usize = 4;

/// Counts for BLEU; the counts of a corpus are the sums over its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BleuCounts {
    /// Matching n-grams of 1 to 4 words.
    pub correct: [u64; ORDERS],
    /// N-grams of 1 to 4 words in the answer.
    pub total: [u64; ORDERS],
    /// Number of words in the answer.
    pub answer: u64,
    /// Number of words in the reference.
    pub reference: u64,
}

impl BleuCounts {
    /// Counts the n-grams of one answer.
    pub fn from_answer(pair: &WordOverlap) -> Self {
        let (answer, reference) = (pair.answer.len(), pair.reference.len());
        let mut counts =
            Self { answer: answer as u64, reference: reference as u64, ..Self::default() };
        let orders = counts.correct.iter_mut().zip(&mut counts.total);
        for (n, (correct, total)) in (1..).zip(orders) {
            *correct = pair.common_ngrams(n) as u64;
            *total = (answer + 1).saturating_sub(n) as u64;
        }
        counts
    }

    /// Multiplies the counts by a number of occurrences of the answer.
    #[must_use]
    pub fn scaled(self, n: u64) -> Self {
        Self {
            correct: self.correct.map(|count| n * count),
            total: self.total.map(|count| n * count),
            answer: n * self.answer,
            reference: n * self.reference,
        }
    }

    /// Returns BLEU (0 to 100) of a single answer with n-grams up to `order`.
    pub fn sentence(&self, order: usize) -> f64 {
        self.compute(order, true)
    }

    /// Returns BLEU (0 to 100) of a corpus with these counts, with n-grams up to `order`.
    pub fn corpus(&self, order: usize) -> f64 {
        self.compute(order, false)
    }

    fn compute(&self, order: usize, uses_effective_order: bool) -> f64 {
        let has_match = self.correct.iter().take(order).any(|n| *n > 0);
        if !has_match {
            return 0.0;
        }
        let (mut log_sum, mut orders, mut smoothing) = (0.0, 0_u32, 1.0);
        for (correct, total) in self.correct.iter().zip(&self.total).take(order) {
            if *total == 0 {
                break;
            }
            orders += 1;
            let precision = if *correct == 0 {
                smoothing *= 2.0;
                1.0 / (smoothing * *total as f64)
            } else {
                *correct as f64 / *total as f64
            };
            log_sum += precision.ln();
        }
        // Without n-grams of some order, its precision and thus BLEU are undefined.
        if !uses_effective_order && (orders as usize) < order {
            return 0.0;
        }
        100.0 * self.brevity_penalty() * (log_sum / f64::from(orders)).exp()
    }

    /// Returns the brevity penalty, 0 to 1.
    fn brevity_penalty(&self) -> f64 {
        if self.answer >= self.reference {
            return 1.0;
        }
        (1.0 - self.reference as f64 / self.answer as f64).exp()
    }
}

impl Sum for BleuCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut sum, counts| {
            for (sum, count) in sum.correct.iter_mut().zip(counts.correct) {
                *sum += count;
            }
            for (sum, count) in sum.total.iter_mut().zip(counts.total) {
                *sum += count;
            }
            sum.answer += counts.answer;
            sum.reference += counts.reference;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(answer: &str, reference: &str) -> BleuCounts {
        let split = |text| str::split_whitespace(text).collect::<Vec<_>>();
        BleuCounts::from_answer(&WordOverlap::new(&split(answer), &split(reference)))
    }

    #[test]
    fn bleu_matches_hand_calculation() {
        // Precisions 5/6, 3/5, 1/4, and 1/(2 · 3) by smoothing; no penalty.
        let cat = counts("the cat sat on the mat", "the cat is on the mat");
        assert_eq!(cat.correct, [5, 3, 1, 0]);
        let by_hand = 100.0 * (5.0 / 6.0 * 3.0 / 5.0 / 4.0 / 6.0_f64).powf(0.25);
        assert!((cat.sentence(4) - by_hand).abs() < 1e-9);
        // One word of two: the brevity penalty is e^(1 − 2); only order 1 exists.
        let short = counts("left", "left lung");
        assert!((short.sentence(4) - 100.0 * (-1.0_f64).exp()).abs() < 1e-9);
        assert!(short.corpus(4).abs() < 1e-12);
        assert!(counts("", "left").sentence(1).abs() < 1e-12);
        assert!(counts("right", "left").sentence(4).abs() < 1e-12);
    }

    /// Corpus BLEU differs from the mean of the sentences.
    #[test]
    fn corpus_bleu_sums_counts() {
        let both = [counts("a b", "a b"), counts("c d e f", "a b c d")];
        let sum: BleuCounts = both.into_iter().sum();
        assert_eq!((sum.correct, sum.total), ([4, 2, 0, 0], [6, 4, 2, 1]));
        let mean = both.iter().map(|c| c.sentence(1)).sum::<f64>() / 2.0;
        assert!((sum.corpus(1) - 400.0 / 6.0).abs() < 1e-9 && (mean - 75.0).abs() < 1e-9);
    }
}

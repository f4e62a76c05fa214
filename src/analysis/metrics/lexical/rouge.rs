//! ROUGE-1, -2 and -L (Lin 2004), as the package `rouge-score` computes them (reference:
//! `rouge_scorer.py` and `tokenize.py` of rouge-score 0.1.2).

use std::collections::HashMap;

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
///
/// Bits stand for the words of `b`, so one addition advances 64 cells of the table (Hyyrö 2004,
/// "Bit-parallel LCS-length computation revisited").
fn longest_common_subsequence(a: &[u32], b: &[u32]) -> usize {
    // The positions of each word in `b`, as index and bits of each block with the word.
    let mut positions: HashMap<u32, Vec<(usize, u64)>> = HashMap::new();
    for (i, word) in b.iter().enumerate() {
        let (block, bit) = (i / BLOCK_BITS, 1 << (i % BLOCK_BITS));
        let blocks = positions.entry(*word).or_default();
        match blocks.last_mut() {
            Some((last, bits)) if *last == block => *bits |= bit,
            _ => blocks.push((block, bit)),
        }
    }
    // A bit is 0 where the length of the subsequence grows by one.
    let mut row = vec![u64::MAX; b.len().div_ceil(BLOCK_BITS)];
    for word in a {
        let (mut carry, mut next) = (false, 0);
        let matches = positions.get(word).map_or(&[][..], Vec::as_slice);
        for (block, bits) in matches {
            carry = pass_carry(row.get_mut(next..*block).unwrap_or_default(), carry);
            if let Some(cells) = row.get_mut(*block) {
                carry = advance(cells, *bits, carry);
            }
            next = block + 1;
        }
        pass_carry(row.get_mut(next..).unwrap_or_default(), carry);
    }
    row.iter().map(|cells| cells.count_zeros() as usize).sum()
}

/// Bits of a block.
const BLOCK_BITS: usize = 64;

/// Passes a carry on through blocks without a match. Returns the carry after them.
fn pass_carry(blocks: &mut [u64], carry: bool) -> bool {
    carry && blocks.iter_mut().all(|cells| advance(cells, 0, true))
}

/// Advances a block by one word, whose positions are `matches`. Returns the carry.
fn advance(cells: &mut u64, matches: u64, carry: bool) -> bool {
    let (sum, overflow) = cells.overflowing_add(*cells & matches);
    let (sum, carry_overflow) = sum.overflowing_add(u64::from(carry));
    *cells = sum | (*cells & !matches);
    overflow || carry_overflow
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

    /// The textbook table.
    fn reference_length(a: &[u32], b: &[u32]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                table[i + 1][j + 1] =
                    if x == y { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn subsequences_have_the_length_of_the_table() {
        let mut state = 1_u32;
        let mut words = |n: usize, vocabulary: u32| -> Vec<u32> {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 16) % vocabulary
            };
            (0..n).map(|_| next()).collect()
        };
        for (n, m, vocabulary) in
            [(0, 5, 2), (5, 0, 2), (63, 64, 2), (64, 65, 3), (200, 300, 4), (300, 500, 90)]
        {
            let (a, b) = (words(n, vocabulary), words(m, vocabulary));
            assert_eq!(longest_common_subsequence(&a, &b), reference_length(&a, &b), "{n} {m}");
        }
        // The textbook table would have 17 billion cells.
        let long = words(131_072, 26);
        assert_eq!(longest_common_subsequence(&long, &long), long.len());
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

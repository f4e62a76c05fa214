//! Whether scores mean what they say: of the cases that were given about 4, is the mean 4.

use serde::{Deserialize, Serialize};

use crate::statistics::undefined::{Defined, at_least};

/// How scores compare with the truth, bin by bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// The bins that hold a case, ascending.
    pub bins: Vec<Bin>,
    /// The mean distance of a bin's mean score from its mean truth, by the number of its cases: the
    /// expected calibration error, in points.
    pub error: f64,
    /// The cases.
    pub n: usize,
}

/// Cases with about the same score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// From this score on.
    pub from: f64,
    /// To below this one; in the last bin, to it.
    pub to: f64,
    /// The cases.
    pub n: usize,
    /// The mean score.
    pub score: f64,
    /// The mean truth.
    pub truth: f64,
}

/// The reliability of scores in bins between these edges, ascending. Scores beyond the edges are in the
/// first and the last bin.
///
/// # Errors
///
/// Without a case, or with fewer than two edges.
pub fn reliability(scores: &[f64], truth: &[f64], edges: &[f64]) -> Defined<Reliability> {
    let n = scores.len().min(truth.len());
    at_least(1, n, "cases")?;
    at_least(2, edges.len(), "edges of bins")?;
    let mut sums = vec![(0, 0.0, 0.0); edges.len() - 1];
    for (score, truth) in scores.iter().zip(truth) {
        let above = edges.partition_point(|edge| edge <= score);
        let bin = above.saturating_sub(1).min(sums.len() - 1);
        let (count, a, b) = sums[bin];
        sums[bin] = (count + 1, a + score, b + truth);
    }
    let bins = sums
        .into_iter()
        .zip(edges.windows(2))
        .filter(|((count, ..), _)| *count > 0);
    let bins: Vec<Bin> = bins
        .map(|((count, score, truth), edges)| Bin {
            from: edges[0],
            to: edges[1],
            n: count,
            score: score / count as f64,
            truth: truth / count as f64,
        })
        .collect();
    let gaps = bins
        .iter()
        .map(|bin| bin.n as f64 * (bin.score - bin.truth).abs());
    Ok(Reliability {
        error: gaps.sum::<f64>() / n as f64,
        n,
        bins,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_by_hand() {
        let found = reliability(
            &[0.2, 0.4, 5.0, 1.0],
            &[1.0, 1.0, 3.0, 1.0],
            &[0.0, 1.0, 5.0],
        )
        .unwrap();
        let [low, high] = found.bins[..] else {
            panic!("{found:?}")
        };
        assert_eq!((low.n, high.n), (2, 2));
        assert!((low.score - 0.3).abs() < 1e-12 && (high.truth - 2.0).abs() < 1e-12);
        // (2 · 0.7 + 2 · 1) / 4
        assert!((found.error - 0.85).abs() < 1e-12);
        assert!(reliability(&[], &[], &[0.0, 1.0]).is_err());
    }
}

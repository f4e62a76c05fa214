//! Reliability of scores: mean label of the cases in each score bin.

use serde::{Deserialize, Serialize};

use crate::statistics::undefined::{Defined, require_at_least};

/// Scores compared with labels, by bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// The non-empty bins, ascending.
    pub bins: Vec<ReliabilityBin>,
    /// Expected calibration error in points: the mean absolute gap of the bins, weighted by their
    /// cases.
    pub error: f64,
    /// Number of cases.
    pub n: usize,
}

/// A score bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Lower bound, inclusive.
    pub from: f64,
    /// Upper bound, exclusive; inclusive in the last bin.
    pub to: f64,
    /// Number of cases.
    pub n: usize,
    /// The mean score.
    pub score: f64,
    /// The mean label.
    pub truth: f64,
}

/// Computes the reliability in bins between ascending edges. Scores outside the edges count in the
/// first and last bin.
///
/// # Errors
///
/// There is no case, or there are fewer than two edges.
pub fn reliability(scores: &[f64], truth: &[f64], edges: &[f64]) -> Defined<Reliability> {
    let n = scores.len().min(truth.len());
    require_at_least(1, n, ["case", "cases"])?;
    require_at_least(2, edges.len(), ["bin edge", "bin edges"])?;
    let mut sums = vec![(0, 0.0, 0.0); edges.len() - 1];
    for (score, truth) in scores.iter().zip(truth) {
        let above = edges.partition_point(|edge| edge <= score);
        let bin = above.saturating_sub(1).min(sums.len() - 1);
        let (count, a, b) = sums[bin];
        sums[bin] = (count + 1, a + score, b + truth);
    }
    let bins = sums.into_iter().zip(edges.windows(2)).filter(|((count, ..), _)| *count > 0);
    let bins: Vec<ReliabilityBin> = bins
        .map(|((count, score, truth), edges)| ReliabilityBin {
            from: edges[0],
            to: edges[1],
            n: count,
            score: score / count as f64,
            truth: truth / count as f64,
        })
        .collect();
    let gaps = bins.iter().map(|bin| bin.n as f64 * (bin.score - bin.truth).abs());
    Ok(Reliability { error: gaps.sum::<f64>() / n as f64, n, bins })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_equal_hand_computation() {
        let found =
            reliability(&[0.2, 0.4, 5.0, 1.0], &[1.0, 1.0, 3.0, 1.0], &[0.0, 1.0, 5.0]).unwrap();
        let [low, high] = found.bins[..] else { panic!("{found:?}") };
        assert_eq!((low.n, high.n), (2, 2));
        assert!((low.score - 0.3).abs() < 1e-12 && (high.truth - 2.0).abs() < 1e-12);
        // (2 · 0.7 + 2 · 1) / 4
        assert!((found.error - 0.85).abs() < 1e-12);
        assert!(reliability(&[], &[], &[0.0, 1.0]).is_err());
    }
}

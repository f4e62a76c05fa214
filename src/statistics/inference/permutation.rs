//! Exact paired permutation test.

/// Limit of the distribution in standard deviations; the probability beyond it is below 10⁻¹⁴.
const CUTOFF: f64 = 8.0;

/// Computes the two-sided p-value of the hypothesis that neither side is better, from one integer
/// difference per cluster: the probability of a sum at least as far from zero if the sign of every
/// difference is random (Fisher's paired randomisation test; scipy `permutation_test` with
/// `permutation_type="samples"`).
///
/// The distribution of the sum is computed exactly, cluster by cluster. So there is no seed, and
/// the test is also valid for few clusters.
pub fn paired_permutation_test(differences: &[i64]) -> f64 {
    let sum: i64 = differences.iter().sum();
    let sizes = differences.iter().map(|d| d.unsigned_abs() as usize);
    let sizes: Vec<usize> = sizes.filter(|size| *size > 0).collect();
    let all: usize = sizes.iter().sum();
    let deviation = sizes.iter().map(|s| (s * s) as f64).sum::<f64>().sqrt();
    let reach = all.min((CUTOFF * deviation).ceil() as usize);
    // Probability of each sum from −reach to reach.
    let mut probabilities = vec![0.0; 2 * reach + 1];
    probabilities[reach] = 1.0;
    let mut next = vec![0.0; probabilities.len()];
    for size in sizes {
        // No difference exceeds the reach, which is eight standard deviations of the sum.
        let overlap = probabilities.len() - size;
        next.fill(0.0);
        for (target, source) in next[size..].iter_mut().zip(&probabilities[..overlap]) {
            *target += 0.5 * source;
        }
        for (target, source) in next[..overlap].iter_mut().zip(&probabilities[size..]) {
            *target += 0.5 * source;
        }
        std::mem::swap(&mut probabilities, &mut next);
    }
    let distance = sum.unsigned_abs() as usize;
    let beyond: f64 = probabilities.iter().skip(reach + distance).sum();
    (2.0 * beyond).clamp(f64::EPSILON, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the eight sign patterns of 3, 2 and 1, one gives 6 and one −6.
    #[test]
    fn p_value_equals_hand_computation() {
        for (differences, expected) in [
            (&[3, 2, 1][..], 0.25),
            (&[3, 2, -1], 0.5),
            (&[1, -1], 1.0),
            (&[0, 0, 0], 1.0),
            (&[], 1.0),
            (&[0, 1, 0, 1, 1, 1, 1], 2.0 / 32.0),
        ] {
            let p = paired_permutation_test(differences);
            assert!((p - expected).abs() < 1e-12, "{differences:?}: {p}");
        }
    }

    #[test]
    fn p_values_equal_scipy() {
        let golden = include_str!("../../../assets/golden/sign_flip.json");
        let golden: Vec<(Vec<i64>, f64)> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 150);
        for (differences, expected) in golden {
            let p = paired_permutation_test(&differences);
            assert!((p - expected).abs() < 1e-9, "{differences:?}: {p}");
        }
    }

    #[test]
    fn many_clusters_approach_the_normal_distribution() {
        // 5,300 of 10,000 fair tosses: six standard deviations away, and 5,098: 1.96.
        let p_value = |wins: usize| {
            let toss = |i| if i < wins { 1 } else { -1 };
            paired_permutation_test(&(0..10_000).map(toss).collect::<Vec<i64>>())
        };
        assert!(p_value(5_300) < 1e-8);
        assert!((p_value(5_098) - 0.0512).abs() < 5e-4, "{}", p_value(5_098));
        assert!(p_value(10_000) <= f64::EPSILON);
    }
}

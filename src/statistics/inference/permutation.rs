//! Exact paired permutation test.

/// Cut-off of the distribution in standard deviations; the probability beyond it is below 10⁻¹⁴.
const REACH: f64 = 8.0;

/// Two-sided p-value of the hypothesis that neither side is better, from one integer difference per cluster: the
/// probability of a sum at least as far from zero if the sign of every difference is random (Fisher's paired
/// randomisation test; scipy `permutation_test` with `permutation_type="samples"`).
///
/// The distribution of the sum is computed exactly, cluster by cluster, so there is no seed, and the test is valid for few
/// clusters too.
pub fn sign_flip(differences: &[i64]) -> f64 {
    let sum: i64 = differences.iter().sum();
    let sizes = differences.iter().map(|d| d.unsigned_abs() as usize);
    let sizes: Vec<usize> = sizes.filter(|size| *size > 0).collect();
    let all: usize = sizes.iter().sum();
    let deviation = sizes.iter().map(|s| (s * s) as f64).sum::<f64>().sqrt();
    let reach = all.min((REACH * deviation).ceil() as usize);
    // Probability of each sum from −reach to reach.
    let mut chances = vec![0.0; 2 * reach + 1];
    chances[reach] = 1.0;
    let mut tossed = vec![0.0; chances.len()];
    for size in sizes {
        // No difference exceeds the reach, which is eight standard deviations of the sum.
        let apart = chances.len() - size;
        tossed.fill(0.0);
        for (to, from) in tossed[size..].iter_mut().zip(&chances[..apart]) {
            *to += 0.5 * from;
        }
        for (to, from) in tossed[..apart].iter_mut().zip(&chances[size..]) {
            *to += 0.5 * from;
        }
        std::mem::swap(&mut chances, &mut tossed);
    }
    let far = sum.unsigned_abs() as usize;
    let beyond: f64 = chances.iter().skip(reach + far).sum();
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
            let got = sign_flip(differences);
            assert!((got - expected).abs() < 1e-12, "{differences:?}: {got}");
        }
    }

    #[test]
    fn p_values_equal_scipy() {
        let golden = include_str!("../../../assets/golden/sign_flip.json");
        let golden: Vec<(Vec<i64>, f64)> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 150);
        for (differences, expected) in golden {
            let got = sign_flip(&differences);
            assert!((got - expected).abs() < 1e-9, "{differences:?}: {got}");
        }
    }

    #[test]
    fn many_clusters_approach_the_normal_distribution() {
        // 5,300 of 10,000 fair tosses: six standard deviations away, and 5,098: 1.96.
        let of = |wins: usize| {
            let toss = |i| if i < wins { 1 } else { -1 };
            sign_flip(&(0..10_000).map(toss).collect::<Vec<i64>>())
        };
        assert!(of(5_300) < 1e-8);
        assert!((of(5_098) - 0.0512).abs() < 5e-4, "{}", of(5_098));
        assert!(of(10_000) <= f64::EPSILON);
    }
}

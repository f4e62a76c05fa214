//! Whether a sum of differences is more than chance, exactly, however few there are.

/// Beyond so many standard deviations no sum is met: less than 10⁻¹⁴ of the chances lie there.
const REACH: f64 = 8.0;

/// The two-sided p-value of "neither side is better" from the difference in each cluster, in whole numbers:
/// the chance of a sum as far from zero if the two sides of every cluster changed places by the toss of a
/// coin (Fisher's randomisation test of pairs; scipy, `permutation_test` with `permutation_type="samples"`).
///
/// All tosses are counted, none is drawn: the distribution of the sum is built cluster by cluster, so that
/// the figure has no seed and holds for five clusters as for five thousand.
pub fn sign_flip(differences: &[i64]) -> f64 {
    let sum: i64 = differences.iter().sum();
    let sizes = differences.iter().map(|d| d.unsigned_abs() as usize);
    let sizes: Vec<usize> = sizes.filter(|size| *size > 0).collect();
    let all: usize = sizes.iter().sum();
    let deviation = sizes.iter().map(|s| (s * s) as f64).sum::<f64>().sqrt();
    let reach = all.min((REACH * deviation).ceil() as usize);
    // The chance of each sum from −reach to reach.
    let mut chances = vec![0.0; 2 * reach + 1];
    chances[reach] = 1.0;
    let mut tossed = vec![0.0; chances.len()];
    for size in sizes {
        // No size is beyond the reach, which is eight times the deviation of all.
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

    /// Of the eight ways to toss for 3, 2 and 1 one gives 6 and one −6.
    #[test]
    fn by_hand() {
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
    fn as_scipy() {
        let golden = include_str!("../../../assets/golden/sign_flip.json");
        let golden: Vec<(Vec<i64>, f64)> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 150);
        for (differences, expected) in golden {
            let got = sign_flip(&differences);
            assert!((got - expected).abs() < 1e-9, "{differences:?}: {got}");
        }
    }

    #[test]
    fn many_clusters_are_as_the_normal_distribution_says() {
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

//! Paired mean difference, clustered by image.

use rand::Rng;
use serde::Serialize;

use super::bootstrap::{Bootstrap, Clusters, percentile_interval};
use crate::statistics::mean::mean;
use crate::statistics::undefined::{Defined, require_at_least};

/// Resamples of the bootstrap and of the permutation test.
const RESAMPLES: usize = 4000;

/// A paired mean difference with interval and p-values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanDifference {
    /// The mean of value − baseline.
    pub value: f64,
    /// The 95 % bootstrap interval, clustered by image; absent for one image.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of a permutation test that flips the signs of whole images.
    pub p: f64,
    /// The p-value after Holm's correction. [`paired_difference`] sets it to `p`; a caller with
    /// several comparisons replaces it.
    pub p_holm: f64,
}

/// Compares pairs `(value, baseline)`, clustered by image.
///
/// # Errors
///
/// There is no pair.
pub fn paired_difference(clusters: &Clusters, pairs: &[(f64, f64)]) -> Defined<MeanDifference> {
    require_at_least(1, pairs.len(), ["case", "cases"])?;
    let bootstrap = Bootstrap { resamples: RESAMPLES, seed: 2 };
    let values: Vec<Option<f64>> =
        pairs.iter().map(|(value, baseline)| Some(value - baseline)).collect();
    let resamples = bootstrap.resample(clusters, |weights| mean(&values, weights));
    let sums = clusters.sum_by_cluster(values.iter().flatten());
    let observed = sums.iter().sum::<f64>();
    let is_as_far = bootstrap.resample_with_rng(|random| {
        let flipped = sums.iter().map(|sum| if random.random_bool(0.5) { *sum } else { -sum });
        // The tolerance keeps equal sums equal despite rounding.
        flipped.sum::<f64>().abs() >= observed.abs() - 1e-12 * pairs.len() as f64
    });
    let count = is_as_far.into_iter().filter(|far| *far).count();
    let p = (count + 1) as f64 / (RESAMPLES + 1) as f64;
    Ok(MeanDifference {
        value: observed / pairs.len() as f64,
        interval: percentile_interval(resamples, clusters).ok(),
        p,
        p_holm: p,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(differences: impl Iterator<Item = f64>) -> MeanDifference {
        let pairs: Vec<_> = differences.map(|d| (0.5 + d, 0.5)).collect();
        paired_difference(&Clusters::new(0..pairs.len()), &pairs).unwrap()
    }

    #[test]
    fn consistent_gain_is_significant_and_noise_is_not() {
        let gain = compare((0..60).map(|i| if i % 4 == 0 { 0.0 } else { 1.0 }));
        assert!((gain.value - 0.75).abs() < 1e-9);
        let [low, high] = gain.interval.unwrap();
        assert!(low > 0.6 && high < 0.9, "{gain:?}");
        assert!(gain.p < 0.001, "{gain:?}");
        let noise = compare((0..60).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }));
        let [low, high] = noise.interval.unwrap();
        assert!(noise.p > 0.9 && low < 0.0 && high > 0.0);
        assert!(paired_difference(&Clusters::default(), &[]).is_err());
    }

    /// Four images with the same sign: 2 of 16 sign patterns are as extreme, so p = 1/8.
    #[test]
    fn permutation_test_is_exact_for_four_images() {
        let difference = compare([1.0; 4].into_iter());
        assert!((difference.p - 0.125).abs() < 0.015, "{difference:?}");
    }

    #[test]
    fn questions_about_one_image_are_one_cluster() {
        let pairs = [(1.0, 0.0); 50];
        let one = paired_difference(&Clusters::new([0; 50]), &pairs).unwrap();
        assert!((one.p - 1.0).abs() < 1e-9 && one.interval.is_none(), "{one:?}");
    }
}

//! Paired mean difference, clustered by image.

use rand::Rng;
use serde::Serialize;

use super::bootstrap::{Bootstrap, Clusters, interval};
use crate::statistics::mean::mean;
use crate::statistics::undefined::{Defined, at_least};

/// Resamples of the bootstrap and of the permutation test.
const DRAWS: usize = 4000;

/// A paired mean difference with interval and p-values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The mean difference: this row − baseline row.
    pub value: f64,
    /// The 95 % bootstrap interval, clustered by image; absent for one image.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of a permutation test that flips the signs of whole images.
    pub p: f64,
    /// The p-value after Holm's correction over all rows.
    pub p_holm: f64,
}

/// Compares paired values `(this row, baseline row)`, clustered by image.
///
/// # Errors
///
/// There is no pair.
pub fn difference(clusters: &Clusters, pairs: &[(f64, f64)]) -> Defined<Difference> {
    at_least(1, pairs.len(), "cases")?;
    let bootstrap = Bootstrap {
        draws: DRAWS,
        seed: 2,
    };
    let values: Vec<Option<f64>> = pairs
        .iter()
        .map(|(value, first)| Some(value - first))
        .collect();
    let draws = bootstrap.draw(clusters, |weights| mean(&values, weights));
    let sums = clusters.sums(values.iter().flatten());
    let observed = sums.iter().sum::<f64>();
    let as_far = bootstrap.random_draws(|random| {
        let turned = sums
            .iter()
            .map(|sum| if random.random_bool(0.5) { *sum } else { -sum });
        // The tolerance keeps equal sums equal despite rounding.
        turned.sum::<f64>().abs() >= observed.abs() - 1e-12 * pairs.len() as f64
    });
    let count = as_far.into_iter().filter(|far| *far).count();
    let p = (count + 1) as f64 / (DRAWS + 1) as f64;
    Ok(Difference {
        value: observed / pairs.len() as f64,
        interval: interval(draws, clusters).ok(),
        p,
        p_holm: p,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(differences: impl Iterator<Item = f64>) -> Difference {
        let pairs: Vec<_> = differences.map(|d| (0.5 + d, 0.5)).collect();
        difference(&Clusters::new(0..pairs.len()), &pairs).unwrap()
    }

    #[test]
    fn consistent_gain_is_significant_and_noise_is_not() {
        let gain = of((0..60).map(|i| if i % 4 == 0 { 0.0 } else { 1.0 }));
        assert!((gain.value - 0.75).abs() < 1e-9);
        let [low, high] = gain.interval.unwrap();
        assert!(low > 0.6 && high < 0.9, "{gain:?}");
        assert!(gain.p < 0.001, "{gain:?}");
        let noise = of((0..60).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }));
        let [low, high] = noise.interval.unwrap();
        assert!(noise.p > 0.9 && low < 0.0 && high > 0.0);
        assert!(difference(&Clusters::default(), &[]).is_err());
    }

    /// Four images with the same sign: 2 of 16 sign patterns are as extreme, so p = 1/8.
    #[test]
    fn permutation_test_is_exact_for_four_images() {
        let all = of([1.0; 4].into_iter());
        assert!((all.p - 0.125).abs() < 0.015, "{all:?}");
    }

    #[test]
    fn questions_about_one_image_are_one_cluster() {
        let pairs = [(1.0, 0.0); 50];
        let one = difference(&Clusters::new([0; 50]), &pairs).unwrap();
        assert!(
            (one.p - 1.0).abs() < 1e-9 && one.interval.is_none(),
            "{one:?}"
        );
    }
}

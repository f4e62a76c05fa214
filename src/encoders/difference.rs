//! Whether one row of a comparison is better than the first: paired, clustered by image.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Draws of the bootstrap and of the permutation test.
const DRAWS: usize = 4000;

/// The mean difference of paired values with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The mean difference, this row minus the first.
    pub value: f64,
    /// The 95 % percentile interval of a bootstrap over images.
    pub interval: [f64; 2],
    /// The two-sided p-value of a permutation test that turns the signs of whole images.
    pub p: f64,
    /// The p-value after Holm's correction for all rows compared.
    pub p_holm: f64,
}

/// Compares paired values, each with the image it belongs to; `None` without any.
pub(super) fn difference(pairs: &[(String, f64, f64)]) -> Option<Difference> {
    let mut clusters: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (cluster, value, first) in pairs {
        let entry = clusters.entry(cluster).or_default();
        *entry = (entry.0 + value - first, entry.1 + 1.0);
    }
    let clusters: Vec<(f64, f64)> = clusters.into_values().collect();
    if clusters.is_empty() {
        return None;
    }
    let n: f64 = clusters.iter().map(|(_, n)| n).sum();
    let observed = clusters.iter().map(|(sum, _)| sum).sum::<f64>() / n;
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn = (0..clusters.len()).map(|_| clusters[rng.random_range(0..clusters.len())]);
            let (sum, n) = drawn.fold((0.0, 0.0), |(s, n), (a, b)| (s + a, n + b));
            sum / f64::max(n, 1.0)
        })
        .collect();
    draws.sort_by(f64::total_cmp);
    let at = |q: f64| draws[((DRAWS - 1) as f64 * q).round() as usize];
    let as_far = (0..DRAWS).filter(|_| {
        let signed = clusters
            .iter()
            .map(|(sum, _)| if rng.random_bool(0.5) { *sum } else { -*sum });
        // Rounding must not make an equal sum look smaller.
        (signed.sum::<f64>() / n).abs() >= observed.abs() - 1e-12
    });
    let p = (as_far.count() + 1) as f64 / (DRAWS + 1) as f64;
    Some(Difference {
        value: observed,
        interval: [at(0.025), at(0.975)],
        p,
        p_holm: p,
    })
}

/// Holm's correction of the p-values of several comparisons (Holm 1979): the smallest times their
/// number, the next times one fewer, and so on, never falling.
pub(super) fn holm(differences: &mut [&mut Difference]) {
    differences.sort_by(|a, b| a.p.total_cmp(&b.p));
    let m = differences.len();
    let mut least: f64 = 0.0;
    for (i, difference) in differences.iter_mut().enumerate() {
        least = least.max((difference.p * (m - i) as f64).min(1.0));
        difference.p_holm = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(differences: impl Iterator<Item = f64>) -> Vec<(String, f64, f64)> {
        differences
            .enumerate()
            .map(|(i, d)| (i.to_string(), 0.5 + d, 0.5))
            .collect()
    }

    #[test]
    fn a_steady_gain_is_seen_and_noise_is_not() {
        let gain = difference(&pairs((0..60).map(|i| if i % 4 == 0 { 0.0 } else { 1.0 }))).unwrap();
        assert!((gain.value - 0.75).abs() < 1e-9);
        assert!(gain.interval[0] > 0.6 && gain.interval[1] < 0.9, "{gain:?}");
        assert!(gain.p < 0.001, "{gain:?}");
        let noise = difference(&pairs((0..60).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })));
        let noise = noise.unwrap();
        assert!(noise.p > 0.9 && noise.interval[0] < 0.0 && noise.interval[1] > 0.0);
        assert!(difference(&[]).is_none());
    }

    /// With four images all turned one way, 2 of the 16 sign patterns are as far: p = 1/8.
    #[test]
    fn the_permutation_test_has_the_exact_p_value() {
        let all = difference(&pairs([1.0; 4].into_iter())).unwrap();
        assert!((all.p - 0.125).abs() < 0.015, "{all:?}");
    }

    #[test]
    fn questions_about_one_image_are_one_draw() {
        let one: Vec<_> = (0..50).map(|_| ("a".to_owned(), 1.0, 0.0)).collect();
        let one = difference(&one).unwrap();
        assert!((one.p - 1.0).abs() < 1e-9, "{one:?}");
    }

    /// By hand: 0.01, 0.02, 0.04 of three become 0.03, 0.04, 0.04.
    #[test]
    fn holm_by_hand() {
        let of = |p| Difference {
            value: 0.0,
            interval: [0.0; 2],
            p,
            p_holm: p,
        };
        let mut three = [of(0.04), of(0.01), of(0.02)];
        let [a, b, c] = &mut three;
        holm(&mut [a, b, c]);
        let adjusted = three.map(|d| (d.p_holm * 1000.0).round() as i64);
        assert_eq!(adjusted, [40, 30, 40]);
    }
}

//! A share with its interval, clustered by image.
//!
//! Questions about one image are not independent; whole images are drawn again, not questions.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Draws of the bootstrap.
const DRAWS: usize = 2000;

/// A mean of values between 0 and 1, with its 95 % percentile interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The mean.
    pub value: f64,
    /// The interval.
    pub interval: [f64; 2],
    /// How many values.
    pub n: usize,
    /// How many images they belong to.
    pub images: usize,
}

/// The mean of `(cluster, value)` pairs; `None` when there are none.
pub fn share(values: &[(String, f64)]) -> Option<Share> {
    let mut clusters: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (cluster, value) in values {
        let entry = clusters.entry(cluster).or_default();
        *entry = (entry.0 + value, entry.1 + 1.0);
    }
    let clusters: Vec<(f64, f64)> = clusters.into_values().collect();
    let mean = |sums: (f64, f64)| sums.0 / sums.1.max(1.0);
    let add = |a: (f64, f64), b: &(f64, f64)| (a.0 + b.0, a.1 + b.1);
    if clusters.is_empty() {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn = (0..clusters.len()).map(|_| &clusters[rng.random_range(0..clusters.len())]);
            mean(drawn.fold((0.0, 0.0), add))
        })
        .collect();
    draws.sort_by(f64::total_cmp);
    let at = |q: f64| draws[((DRAWS - 1) as f64 * q).round() as usize];
    Some(Share {
        value: mean(clusters.iter().fold((0.0, 0.0), add)),
        interval: [at(0.025), at(0.975)],
        n: values.len(),
        images: clusters.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cluster_has_no_spread_and_many_have() {
        let values = |f: fn(usize) -> String| -> Vec<(String, f64)> {
            (0..100)
                .map(|i| (f(i), f64::from(u8::from(i % 2 == 0))))
                .collect()
        };
        let one = share(&values(|_| "a".to_owned())).unwrap();
        assert_eq!((one.value, one.interval, one.images), (0.5, [0.5, 0.5], 1));
        let many = share(&values(|i| i.to_string())).unwrap();
        // The binomial's 95 % interval at n = 100 is 0.402 to 0.598.
        assert!((many.interval[0] - 0.40).abs() < 0.03, "{many:?}");
        assert!((many.interval[1] - 0.60).abs() < 0.03, "{many:?}");
        assert!(share(&[]).is_none());
    }
}

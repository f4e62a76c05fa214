//! A share with its interval, clustered by image.
//!
//! Questions about one image are not independent; whole images are drawn again, not questions. A bootstrap
//! knows no spread but that of its values: where they are few, or all equal, its interval would be too
//! narrow, down to a point.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Draws of the bootstrap.
const DRAWS: usize = 2000;

/// Fewer images than this are too few to be drawn from.
const FEW: usize = 10;
/// The normal distribution's 97.5 % quantile.
const Z: f64 = 1.959_963_984_540_054;

/// A mean of values between 0 and 1, with its 95 % interval: the percentile interval of the bootstrap over
/// images, or [Wilson's](wilson) over them where they are fewer than ten or their means all equal.
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
    let value = mean(clusters.iter().fold((0.0, 0.0), add));
    let (n, images) = (values.len(), clusters.len());
    let whole = |interval| Share {
        value,
        interval,
        n,
        images,
    };
    let equal = clusters
        .iter()
        .all(|sums| (mean(*sums) - value).abs() < 1e-12);
    if images < FEW || equal {
        return Some(whole(wilson(value, images as f64)));
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
    Some(whole([at(0.025), at(0.975)]))
}

/// The score interval of a share of `n` (Wilson, Probable inference, 1927; scipy,
/// `stats/_binomtest.py`). With images for `n` it is wide: it takes the
/// questions about one image for one.
fn wilson(share: f64, n: f64) -> [f64; 2] {
    let scale = 1.0 + Z * Z / n;
    let center = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    [(center - half).max(0.0), (center + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_or_equal_values_do_not_pretend_to_be_sure() {
        let golden = include_str!("../../assets/golden/intervals.json");
        let golden: Vec<serde_json::Value> = serde_json::from_str(golden).unwrap();
        let all = |n: u64| (0..n).map(|i| (i.to_string(), 1.0)).collect::<Vec<_>>();
        for entry in &golden {
            let [k, n] = ["k", "n"].map(|name| entry[name].as_u64().unwrap());
            let mut found = vec![wilson(k as f64 / n as f64, n as f64)];
            if k == n {
                found.push(share(&all(n)).unwrap().interval);
            }
            for (i, bound) in found.iter().flat_map(|f| f.iter().enumerate()) {
                let expected = entry["interval"][i].as_f64().unwrap();
                assert!((bound - expected).abs() < 1e-9, "{entry}: {found:?}");
            }
        }
        let one = share(&all(1)).unwrap().interval;
        assert!(one[0] < 0.25 && one[1] > 0.999, "{one:?}");
    }

    #[test]
    fn many_images_have_the_spread_of_theirs() {
        let values = |f: fn(usize) -> String| -> Vec<(String, f64)> {
            (0..100)
                .map(|i| (f(i), f64::from(u8::from(i % 2 == 0))))
                .collect()
        };
        let one = share(&values(|_| "a".to_owned())).unwrap();
        assert_eq!((one.value, one.images), (0.5, 1));
        assert!(one.interval[0] < 0.1 && one.interval[1] > 0.9, "{one:?}");
        let many = share(&values(|i| i.to_string())).unwrap();
        // The binomial's 95 % interval at n = 100 is 0.402 to 0.598.
        assert!((many.interval[0] - 0.40).abs() < 0.03, "{many:?}");
        assert!((many.interval[1] - 0.60).abs() < 0.03, "{many:?}");
        assert!(share(&[]).is_none());
    }
}

//! A share with its interval, clustered by image.
//!
//! Questions about one image are not independent; whole images are drawn again, not questions. A bootstrap
//! knows no spread but that of its values: where they are few, or all equal, its interval would be too
//! narrow, down to a point.

use serde::Serialize;

use crate::statistics::{Bootstrap, Clusters, mean, share_interval};
use crate::support::terminal::number::percent_with_interval;

/// A mean of values between 0 and 1, with its 95 % interval: the percentile interval of the bootstrap over
/// images, or [Wilson's](crate::statistics::inference::wilson) over them where they are fewer than ten or their means all equal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Proportion {
    /// The mean.
    pub value: f64,
    /// The interval.
    pub interval: [f64; 2],
    /// How many values.
    pub n: usize,
    /// How many images they belong to.
    pub images: usize,
}

impl Proportion {
    /// A row of a table: name, value with interval, n and images.
    pub fn cells(&self, name: &str) -> [String; 4] {
        [
            name.to_owned(),
            percent_with_interval(self.value, Some(self.interval)),
            self.n.to_string(),
            self.images.to_string(),
        ]
    }
}

/// The mean of `(cluster, value)` pairs; `None` when there are none.
pub fn share(values: &[(String, f64)]) -> Option<Proportion> {
    let clusters = Clusters::new(values.iter().map(|(cluster, _)| cluster.as_str()));
    let present: Vec<Option<f64>> = values.iter().map(|(_, value)| Some(*value)).collect();
    let statistic = |weights: &[f64]| mean(&present, weights);
    let found = Bootstrap::default().estimate(&clusters, values.len(), statistic);
    let value = found.value.ok()?;
    Some(Proportion {
        value,
        interval: share_interval(value, found.interval, found.clusters).ok()?,
        n: found.n,
        images: found.clusters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

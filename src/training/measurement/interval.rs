//! Proportions with 95 % confidence intervals, clustered by image.
//!
//! Questions about one image are not independent, so the bootstrap resamples images, not questions.
//! With few values, or equal ones, the bootstrap interval is too narrow or a single point.

use serde::Serialize;

use crate::statistics::{Bootstrap, Clusters, mean, proportion_interval};
use crate::support::terminal::number::format_percent_with_interval;

/// Mean of values between 0 and 1, with its 95 % confidence interval.
///
/// The interval is the percentile interval of the bootstrap over images. If there are fewer than
/// ten images or all resamples have the same mean, it is
/// [Wilson's](crate::statistics::inference::wilson) interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Proportion {
    /// The mean, from 0 to 1.
    pub value: f64,
    /// The 95 % confidence interval.
    pub interval: [f64; 2],
    /// Number of values.
    pub n: usize,
    /// Number of images (clusters).
    pub images: usize,
}

impl Proportion {
    /// Returns a table row: name, value with interval, n and number of images.
    pub fn cells(&self, name: &str) -> [String; 4] {
        [
            name.to_owned(),
            format_percent_with_interval(self.value, Some(self.interval)),
            self.n.to_string(),
            self.images.to_string(),
        ]
    }
}

/// Estimates the mean of `(cluster, value)` pairs; `None` for an empty slice.
pub fn proportion_with_interval(values: &[(String, f64)]) -> Option<Proportion> {
    let clusters = Clusters::new(values.iter().map(|(cluster, _)| cluster.as_str()));
    let optional: Vec<Option<f64>> = values.iter().map(|(_, value)| Some(*value)).collect();
    let statistic = |weights: &[f64]| mean(&optional, weights);
    let estimate = Bootstrap::default().estimate(&clusters, values.len(), statistic);
    let value = estimate.value.ok()?;
    Some(Proportion {
        value,
        interval: proportion_interval(value, estimate.interval, estimate.clusters).ok()?,
        n: estimate.n,
        images: estimate.clusters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_narrows_with_the_number_of_images() {
        let values = |image: fn(usize) -> String| -> Vec<(String, f64)> {
            (0..100).map(|i| (image(i), f64::from(u8::from(i % 2 == 0)))).collect()
        };
        let single_image = proportion_with_interval(&values(|_| "a".to_owned())).unwrap();
        assert_eq!((single_image.value, single_image.images), (0.5, 1));
        let [low, high] = single_image.interval;
        assert!(low < 0.1 && high > 0.9, "{single_image:?}");
        let many_images = proportion_with_interval(&values(|i| i.to_string())).unwrap();
        // The binomial's 95 % interval at n = 100 is 0.402 to 0.598.
        assert!((many_images.interval[0] - 0.40).abs() < 0.03, "{many_images:?}");
        assert!((many_images.interval[1] - 0.60).abs() < 0.03, "{many_images:?}");
        assert!(proportion_with_interval(&[]).is_none());
    }
}

//! A statistic with its confidence interval, and the position of the interval relative to a target.

use serde::{Deserialize, Serialize};

use super::unit::MeasureUnit;
use crate::statistics::{
    Bootstrap, Clusters, Defined, Estimate, MIN_CLUSTERS, Undefined, mean, percentile_interval,
    proportion_interval, student_quantile, student_two_sided_p,
};

/// A statistic with its 95 % bootstrap interval, clustered by image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AuditEstimate {
    /// The value; `None` if undefined.
    pub value: Option<f64>,
    /// The 95 % interval; `None` if undefined.
    pub interval: Option<[f64; 2]>,
    /// Number of pairs, presentations or responses.
    pub n: usize,
    /// Number of images (clusters).
    pub images: usize,
    /// True if every resample gives this value, so that there is no interval.
    #[serde(rename = "in_every_draw", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_constant: bool,
    /// Two-sided p-value of a value above zero after Holm's correction; absent if it was not tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_holm: Option<f64>,
    /// Reason why value or interval is undefined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// Values with the cluster of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusteredValues {
    clusters: Vec<String>,
    values: Vec<f64>,
}

/// Position of a confidence interval relative to the value of an unbiased judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalPosition {
    /// The whole interval is above the target.
    Above,
    /// The whole interval is below the target.
    Below,
    /// The whole interval is within the tolerance around the target.
    Equivalent,
    /// Any other position, and any estimate from too few images.
    Unclear,
}

impl ClusteredValues {
    /// Collects values with the name of their cluster.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let mut collected = Self::default();
        for (cluster, value) in values {
            collected.clusters.push(cluster.to_owned());
            collected.values.push(value);
        }
        collected
    }

    /// Returns true if there is no value.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Estimates the mean. The interval of a proportion stays within 0 and 1.
    pub(crate) fn estimate_mean(&self, unit: MeasureUnit, bootstrap: Bootstrap) -> AuditEstimate {
        let clusters = Clusters::new(&self.clusters);
        let values: Vec<Option<f64>> = self.values.iter().copied().map(Some).collect();
        let estimate = bootstrap.estimate(&clusters, values.len(), |w| mean(&values, w));
        AuditEstimate::from_estimate(&estimate, unit)
    }

    /// Estimates another statistic of clustered values; it receives the weight of each value.
    pub(crate) fn estimate_statistic(
        clusters: &[String],
        unit: MeasureUnit,
        bootstrap: Bootstrap,
        statistic: impl Fn(&[f64]) -> Defined<f64> + Sync,
    ) -> AuditEstimate {
        let numbered = Clusters::new(clusters);
        let estimate = bootstrap.estimate(&numbered, clusters.len(), statistic);
        AuditEstimate::from_estimate(&estimate, unit)
    }
}

impl AuditEstimate {
    fn from_estimate(estimate: &Estimate, unit: MeasureUnit) -> Self {
        let interval = match (estimate.value, unit) {
            // Equal resamples of a proportion between 0 and 1: the values are not binary (for
            // example, each is ½ if every pair ties), so Wilson's interval does not apply.
            (Ok(value), MeasureUnit::Proportion)
                if estimate.interval == Err(Undefined::NoSpread)
                    && estimate.clusters >= MIN_CLUSTERS
                    && value > 0.0
                    && value < 1.0 =>
            {
                estimate.interval
            }
            (Ok(value), MeasureUnit::Proportion) => {
                proportion_interval(value, estimate.interval, estimate.clusters)
            }
            _ => estimate.interval,
        };
        let reason = estimate.value.err().or(interval.err());
        Self {
            value: estimate.value.ok().map(round_to_6),
            interval: interval.ok().map(|bounds| bounds.map(round_to_6)),
            n: estimate.n,
            images: estimate.clusters,
            is_constant: interval == Err(Undefined::NoSpread),
            p_holm: None,
            undefined: reason.map(|e| e.to_string()),
        }
    }

    /// Builds an estimate from resamples that several statistics share.
    pub(crate) fn from_resamples(
        value: Defined<f64>,
        resamples: Vec<Defined<f64>>,
        clusters: &Clusters,
        unit: MeasureUnit,
    ) -> Self {
        let estimate = Estimate {
            interval: value.and_then(|_| percentile_interval(resamples, clusters)),
            value,
            n: clusters.len(),
            clusters: clusters.count(),
        };
        Self::from_estimate(&estimate, unit)
    }

    /// Creates an estimate without a value, with the reason.
    pub fn undefined(reason: impl Into<String>) -> Self {
        Self { undefined: Some(reason.into()), ..Self::default() }
    }

    /// Compares the interval with `expected`, the value of an unbiased judge: above or below if the
    /// interval excludes it, equivalent if the interval stays within `tolerance` of it.
    pub fn position(&self, expected: f64, tolerance: f64) -> IntervalPosition {
        let Some(value) = self.value else {
            return IntervalPosition::Unclear;
        };
        // Resamples of a few images vary less than new images would.
        if self.images < MIN_CLUSTERS {
            return IntervalPosition::Unclear;
        }
        let Some([low, high]) = self.interval else {
            // Every resample gives the same value, which is certain enough with many images.
            return match value - expected {
                _ if !self.is_constant => IntervalPosition::Unclear,
                difference if difference > tolerance => IntervalPosition::Above,
                difference if difference < -tolerance => IntervalPosition::Below,
                _ => IntervalPosition::Equivalent,
            };
        };
        if low > expected {
            IntervalPosition::Above
        } else if high < expected {
            IntervalPosition::Below
        } else if low >= expected - tolerance && high <= expected + tolerance {
            IntervalPosition::Equivalent
        } else {
            IntervalPosition::Unclear
        }
    }

    /// Computes the two-sided p-value of a value above zero: that of Student's t, with the standard
    /// error that the lower bound of the 95 % interval implies. So p is 0.05 if the bound is zero. A
    /// value of at most zero has p = 1. `None` if the position of the interval is unclear for lack of
    /// images.
    pub(crate) fn p_above_zero(&self) -> Option<f64> {
        let value = self.value?;
        if self.images < MIN_CLUSTERS {
            return None;
        }
        let Some([low, _]) = self.interval else {
            // As in `position`: every resample gives the same value.
            return self.is_constant.then_some(if value > 0.0 { 0.0 } else { 1.0 });
        };
        if value <= 0.0 {
            return Some(1.0);
        }
        if low >= value {
            return Some(0.0);
        }
        let freedom = (self.images - 1) as f64;
        let t = student_quantile(0.975, freedom).ok()? * value / (value - low);
        Some(student_two_sided_p(t, freedom))
    }

    /// Returns true if the interval excludes values above `tolerance`. False with too few images.
    pub(crate) fn is_at_most(&self, tolerance: f64) -> bool {
        let bound = self.interval.map(|[_, high]| high);
        let bound = bound.or(self.value.filter(|_| self.is_constant));
        self.images >= MIN_CLUSTERS && bound.is_some_and(|bound| bound <= tolerance)
    }

    /// Returns the same estimate with the opposite sign.
    pub(crate) fn negated(&self) -> Self {
        Self {
            value: self.value.map(|value| 0.0 - value),
            interval: self.interval.map(|[low, high]| [0.0 - high, 0.0 - low]),
            ..self.clone()
        }
    }

    /// Formats value and interval for a sentence.
    pub fn describe(&self, unit: MeasureUnit) -> String {
        let Some(value) = self.value else {
            let reason = self.undefined.as_deref().unwrap_or("no case");
            return format!("undefined ({reason})");
        };
        let interval = match self.interval {
            Some([low, high]) => {
                format!("{} to {}", unit.format_bound(low), unit.format_bound(high))
            }
            None if self.is_constant => "same in every resample".to_owned(),
            None => "interval undefined".to_owned(),
        };
        format!("{}{} ({interval})", unit.format_value(value), unit.sentence_suffix())
    }
}

/// Rounds to six decimals, so that a written value is read back unchanged; zero has no sign.
fn round_to_6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, interval: Option<[f64; 2]>) -> AuditEstimate {
        AuditEstimate {
            value: Some(value),
            interval,
            n: 50,
            images: 50,
            is_constant: interval.is_none(),
            p_holm: None,
            undefined: None,
        }
    }

    #[test]
    fn wide_interval_is_unclear() {
        assert_eq!(
            estimate(0.5, Some([0.45, 0.55])).position(0.5, 0.1),
            IntervalPosition::Equivalent
        );
        assert_eq!(estimate(0.5, Some([0.2, 0.8])).position(0.5, 0.1), IntervalPosition::Unclear);
        assert_eq!(estimate(0.6, Some([0.51, 0.7])).position(0.5, 0.1), IntervalPosition::Above);
        assert_eq!(estimate(0.4, Some([0.3, 0.49])).position(0.5, 0.1), IntervalPosition::Below);
        assert_eq!(estimate(0.5, None).position(0.5, 0.1), IntervalPosition::Equivalent);
        assert_eq!(estimate(1.0, None).position(0.5, 0.1), IntervalPosition::Above);
        assert_eq!(AuditEstimate::undefined("x").position(0.5, 1.0), IntervalPosition::Unclear);
        let few = AuditEstimate { images: 3, ..estimate(0.5, None) };
        assert_eq!(few.position(0.5, 0.1), IntervalPosition::Unclear);
    }

    #[test]
    fn p_is_a_twentieth_if_the_interval_ends_at_zero() {
        let p = |value, low| estimate(value, Some([low, 2.0 * value])).p_above_zero().unwrap();
        assert!((p(0.3, 0.0) - 0.05).abs() < 1e-9);
        assert!(p(0.3, 0.2) < 1e-6 && p(0.3, -0.3) > 0.3);
        assert!(p(-0.3, -0.4) > 0.999);
        assert_eq!(estimate(0.3, None).p_above_zero(), Some(0.0));
        assert_eq!(estimate(0.0, None).p_above_zero(), Some(1.0));
        let few = AuditEstimate { images: 3, ..estimate(0.5, Some([0.4, 0.6])) };
        assert_eq!(few.p_above_zero(), None);
        assert!(!few.is_at_most(1.0) && estimate(0.5, None).is_at_most(0.5));
        assert!(!estimate(0.0, Some([-0.3, 0.3])).is_at_most(0.25));
    }

    #[test]
    fn estimates_are_described_with_unit() {
        let proportion = estimate(0.503, Some([0.47, 0.54]));
        assert_eq!(proportion.describe(MeasureUnit::Proportion), "50.3 % (47 to 54)");
        assert_eq!(
            estimate(-0.1, Some([-0.2, 0.0])).describe(MeasureUnit::ProportionDifference),
            "-10.0 percentage points (-20 to +0)"
        );
        let negated = estimate(-0.1, Some([-0.2, 0.0])).negated();
        assert_eq!(negated.describe(MeasureUnit::Points), "0.10 points (0.00 to 0.20)");
        assert_eq!(AuditEstimate::undefined("x").describe(MeasureUnit::Points), "undefined (x)");
    }

    #[test]
    fn empty_sample_has_no_mean() {
        let empty =
            ClusteredValues::new([]).estimate_mean(MeasureUnit::Proportion, Bootstrap::default());
        assert!(empty.value.is_none() && empty.interval.is_none() && empty.undefined.is_some());
        let one = ClusteredValues::new([("a", 1.0)])
            .estimate_mean(MeasureUnit::Proportion, Bootstrap::default());
        assert_eq!((one.value, one.n, one.images), (Some(1.0), 1, 1));
        assert!(one.interval.unwrap()[0] < 0.5, "{one:?}");
    }
}

//! A figure with its interval, and what may be concluded from the two.

use serde::{Deserialize, Serialize};

use super::result::MeasureUnit;
use crate::statistics::{
    Bootstrap, Clusters, Defined, Estimate, FEW, Undefined, interval, mean, share_interval,
};

/// A figure with its 95 % interval, by draws of whole images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AuditEstimate {
    /// The figure; `None` where it is undefined.
    pub value: Option<f64>,
    /// Its 95 % interval; `None` where the cases do not tell it.
    pub interval: Option<[f64; 2]>,
    /// The pairs, presentations or responses it is taken over.
    pub n: usize,
    /// The images they are about.
    pub images: usize,
    /// Whether every draw gave this figure, so that there is no interval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_every_draw: bool,
    /// Why there is no figure, or no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// Values, each with what is drawn as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusteredValues {
    clusters: Vec<String>,
    values: Vec<f64>,
}

/// What an interval says of a value that ought to be something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalPosition {
    /// It is above.
    Above,
    /// It is below.
    Below,
    /// It is there, as nearly as matters.
    There,
    /// The cases do not tell.
    Unclear,
}

impl ClusteredValues {
    /// Values by cluster.
    pub(super) fn new<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let mut sample = Self::default();
        for (cluster, value) in values {
            sample.clusters.push(cluster.to_owned());
            sample.values.push(value);
        }
        sample
    }

    /// Whether there is no value.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The mean, with the interval that suits its unit.
    pub(super) fn mean(&self, unit: MeasureUnit, bootstrap: Bootstrap) -> AuditEstimate {
        let clusters = Clusters::new(&self.clusters);
        let values: Vec<Option<f64>> = self.values.iter().copied().map(Some).collect();
        let found = bootstrap.estimate(&clusters, values.len(), |w| mean(&values, w));
        AuditEstimate::of(&found, unit)
    }

    /// Another statistic of the same clusters, given how often each value was drawn.
    pub(super) fn statistic(
        clusters: &[String],
        unit: MeasureUnit,
        bootstrap: Bootstrap,
        statistic: impl Fn(&[f64]) -> Defined<f64> + Sync,
    ) -> AuditEstimate {
        let all = Clusters::new(clusters);
        let found = bootstrap.estimate(&all, clusters.len(), statistic);
        AuditEstimate::of(&found, unit)
    }
}

impl AuditEstimate {
    fn of(found: &Estimate, unit: MeasureUnit) -> Self {
        let interval = match (found.value, unit) {
            // A share that is the same in every draw without being none or all is no toss of a coin:
            // each pair counts half, as where both orders agree.
            (Ok(share), MeasureUnit::Share)
                if found.interval == Err(Undefined::NoSpread)
                    && found.clusters >= FEW
                    && share > 0.0
                    && share < 1.0 =>
            {
                found.interval
            }
            (Ok(share), MeasureUnit::Share) => {
                share_interval(share, found.interval, found.clusters)
            }
            _ => found.interval,
        };
        Self {
            value: found.value.ok().map(rounded),
            interval: interval.ok().map(|ends| ends.map(rounded)),
            n: found.n,
            images: found.clusters,
            in_every_draw: interval == Err(Undefined::NoSpread),
            undefined: found.value.err().or(interval.err()).map(|e| e.to_string()),
        }
    }

    /// A figure whose draws were made elsewhere, together with others'.
    pub(super) fn drawn(
        value: Defined<f64>,
        draws: Vec<Defined<f64>>,
        clusters: &Clusters,
        unit: MeasureUnit,
    ) -> Self {
        let found = Estimate {
            interval: value.and_then(|_| interval(draws, clusters)),
            value,
            n: clusters.len(),
            clusters: clusters.count(),
        };
        Self::of(&found, unit)
    }

    /// No figure, and why.
    pub fn undefined(why: impl Into<String>) -> Self {
        Self {
            undefined: Some(why.into()),
            ..Self::default()
        }
    }

    /// Whether it is `expected`: above or below where the interval leaves it out, there where the
    /// interval strays no further than `tolerable` from it.
    pub fn sign(&self, expected: f64, tolerable: f64) -> IntervalPosition {
        let Some(value) = self.value else {
            return IntervalPosition::Unclear;
        };
        // Draws from a few images are more alike than other images would be.
        if self.images < FEW {
            return IntervalPosition::Unclear;
        }
        let Some([low, high]) = self.interval else {
            // Every draw is the same: sure enough where there are many images.
            return match value - expected {
                _ if !self.in_every_draw => IntervalPosition::Unclear,
                away if away > tolerable => IntervalPosition::Above,
                away if away < -tolerable => IntervalPosition::Below,
                _ => IntervalPosition::There,
            };
        };
        if low > expected {
            IntervalPosition::Above
        } else if high < expected {
            IntervalPosition::Below
        } else if low >= expected - tolerable && high <= expected + tolerable {
            IntervalPosition::There
        } else {
            IntervalPosition::Unclear
        }
    }

    /// The same figure taken the other way round.
    pub(super) fn opposite(&self) -> Self {
        Self {
            value: self.value.map(|value| 0.0 - value),
            interval: self.interval.map(|[low, high]| [0.0 - high, 0.0 - low]),
            ..self.clone()
        }
    }

    /// The figure and its interval in words; what it is counted in only once.
    pub fn words(&self, unit: MeasureUnit) -> String {
        let Some(value) = self.value else {
            let why = self.undefined.as_deref().unwrap_or("no case");
            return format!("undefined ({why})");
        };
        let name = match unit {
            MeasureUnit::Share => " %",
            MeasureUnit::ShareDifference => " percentage points",
            MeasureUnit::Points => " points",
            MeasureUnit::LogOdds => "",
        };
        match self.interval {
            Some([low, high]) => {
                let (low, high) = (unit.short(low), unit.short(high));
                format!("{}{name} ({low} to {high})", unit.shown(value))
            }
            None if self.in_every_draw => {
                format!("{}{name} (in every draw)", unit.shown(value))
            }
            None => format!("{}{name} (interval undefined)", unit.shown(value)),
        }
    }
}

/// To six decimals, so that what is written is what is read again; zero has no sign.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6 + 0.0
}

impl MeasureUnit {
    /// A value as tables show it, without the name of the unit.
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.1}", 100.0 * value),
            Self::ShareDifference => format!("{:+.1}", 100.0 * value),
            // What rounds to zero has no sign.
            Self::Points | Self::LogOdds => format!("{:.2}", (value * 100.0).round() / 100.0 + 0.0),
        }
    }

    /// The end of an interval as words show it.
    fn short(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.0}", 100.0 * value),
            Self::ShareDifference => format!("{:+.0}", 100.0 * value),
            Self::Points | Self::LogOdds => self.shown(value),
        }
    }

    /// What stands behind a value in tables.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Share => " %",
            Self::ShareDifference => " pp",
            Self::Points | Self::LogOdds => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(value: f64, interval: Option<[f64; 2]>) -> AuditEstimate {
        AuditEstimate {
            value: Some(value),
            interval,
            n: 50,
            images: 50,
            in_every_draw: interval.is_none(),
            undefined: None,
        }
    }

    #[test]
    fn a_wide_interval_acquits_nobody() {
        assert_eq!(
            reading(0.5, Some([0.45, 0.55])).sign(0.5, 0.1),
            IntervalPosition::There
        );
        assert_eq!(
            reading(0.5, Some([0.2, 0.8])).sign(0.5, 0.1),
            IntervalPosition::Unclear
        );
        assert_eq!(
            reading(0.6, Some([0.51, 0.7])).sign(0.5, 0.1),
            IntervalPosition::Above
        );
        assert_eq!(
            reading(0.4, Some([0.3, 0.49])).sign(0.5, 0.1),
            IntervalPosition::Below
        );
        assert_eq!(reading(0.5, None).sign(0.5, 0.1), IntervalPosition::There);
        assert_eq!(reading(1.0, None).sign(0.5, 0.1), IntervalPosition::Above);
        assert_eq!(
            AuditEstimate::undefined("x").sign(0.5, 1.0),
            IntervalPosition::Unclear
        );
        let few = AuditEstimate {
            images: 3,
            ..reading(0.5, None)
        };
        assert_eq!(few.sign(0.5, 0.1), IntervalPosition::Unclear);
    }

    #[test]
    fn figures_in_words() {
        let share = reading(0.503, Some([0.47, 0.54]));
        assert_eq!(share.words(MeasureUnit::Share), "50.3 % (47 to 54)");
        assert_eq!(
            reading(-0.1, Some([-0.2, 0.0])).words(MeasureUnit::ShareDifference),
            "-10.0 percentage points (-20 to +0)"
        );
        let turned = reading(-0.1, Some([-0.2, 0.0])).opposite();
        assert_eq!(
            turned.words(MeasureUnit::Points),
            "0.10 points (0.00 to 0.20)"
        );
        assert_eq!(
            AuditEstimate::undefined("x").words(MeasureUnit::Points),
            "undefined (x)"
        );
    }

    #[test]
    fn a_sample_of_nothing_has_no_mean() {
        let empty = ClusteredValues::new([]).mean(MeasureUnit::Share, Bootstrap::default());
        assert!(empty.value.is_none() && empty.interval.is_none() && empty.undefined.is_some());
        let one = ClusteredValues::new([("a", 1.0)]).mean(MeasureUnit::Share, Bootstrap::default());
        assert_eq!((one.value, one.n, one.images), (Some(1.0), 1, 1));
        assert!(one.interval.unwrap()[0] < 0.5, "{one:?}");
    }
}

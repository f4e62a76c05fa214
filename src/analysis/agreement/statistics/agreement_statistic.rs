//! An agreement statistic with its interval and the human ceiling.

use serde::Serialize;
use serde::ser::SerializeMap;

use super::coverage::Coverage;
use super::statistic::Statistic;
use crate::analysis::agreement::statistics::statistic_group::StatisticGroup;
use crate::statistics::{
    Bootstrap, Defined, Estimate, IccForm, MIN_CLUSTERS, Undefined, percentile_interval,
    proportion_interval,
};

/// Names of the two sides of a comparison in messages.
pub(crate) const SIDE_NAMES: [&str; 2] = ["the judge's score", "the label"];

/// A statistic of judge and labels, with its human ceiling.
#[derive(Clone, Debug, PartialEq)]
pub struct AgreementStatistic {
    /// The statistic.
    pub statistic: Statistic,
    /// Value and interval.
    pub estimate: Estimate,
    /// Number of labelled cases, and of those with a verdict. Statistics without ties use fewer.
    pub coverage: Coverage,
    /// The exact interval of an intraclass correlation.
    pub exact_interval: Option<[f64; 2]>,
    /// Inter-rater agreement, if several raters labelled the same cases.
    pub ceiling: Option<HumanCeiling>,
}

/// Inter-rater agreement by the same statistic.
#[derive(Clone, Debug, PartialEq)]
pub struct HumanCeiling {
    /// Value and interval.
    pub estimate: Estimate,
    /// The exact interval of an intraclass correlation.
    pub exact_interval: Option<[f64; 2]>,
}

/// Computes the statistics of a group, with the human ceiling of each.
pub fn compute_statistics(
    group: &StatisticGroup,
    ceiling: Option<&StatisticGroup>,
    bootstrap: Bootstrap,
) -> Vec<AgreementStatistic> {
    let judge = estimate_statistics(group, bootstrap);
    let raters = ceiling.map(|group| estimate_statistics(group, bootstrap));
    let mut raters = raters.into_iter().flatten();
    judge
        .into_iter()
        .zip(&group.statistics)
        .map(|(judge, statistic)| AgreementStatistic {
            statistic: *statistic,
            estimate: judge.estimate,
            coverage: Coverage { judged: group.n, labelled: group.labelled },
            exact_interval: judge.exact_interval,
            ceiling: raters
                .next()
                // The mean signed error between raters is zero by construction.
                .filter(|_| *statistic != Statistic::Bias),
        })
        .collect()
}

/// Estimates every statistic of a group, with its bootstrap interval and, for intraclass
/// correlations, its exact interval. The group is that of the judge or that of the raters; both use
/// the fields of [`HumanCeiling`].
fn estimate_statistics(group: &StatisticGroup, bootstrap: Bootstrap) -> Vec<HumanCeiling> {
    let values = group.values();
    let mut resamples: Vec<Vec<Defined<f64>>> = vec![Vec::new(); values.len()];
    if values.iter().any(Result::is_ok) {
        for resample in bootstrap.resample(&group.clusters, |weights| (group.compute)(weights)) {
            for (values, value) in resamples.iter_mut().zip(resample) {
                values.push(value);
            }
        }
    }
    let estimate = |i: usize, value: Defined<f64>, resamples: Vec<Defined<f64>>| {
        let (count, statistic) = (group.counts.get(i)?, group.statistics.get(i)?);
        let value = value.and_then(|value| statistic.check_case_count(count.n).map(|()| value));
        let resampled = value.and_then(|_| percentile_interval(resamples, &group.clusters));
        let interval = match value {
            Ok(proportion) if statistic.is_proportion() => {
                proportion_interval(proportion, resampled, count.images)
            }
            _ => resampled,
        };
        let exact = statistic.icc_form().zip(group.mean_squares);
        let exact =
            exact.and_then(|(form, squares)| squares.for_form(form).ok()?.interval(form).ok());
        // If raters contradict each other, the lower bound of ICC(2,k) passes infinity.
        let exact = exact.filter(|[low, high]| low <= high);
        let estimate = Estimate { value, interval, n: count.n, clusters: count.images };
        Some(HumanCeiling { estimate, exact_interval: exact })
    };
    let estimates = values.into_iter().zip(resamples).enumerate();
    estimates.filter_map(|(i, (value, resamples))| estimate(i, value, resamples)).collect()
}

impl Statistic {
    /// Checks the number of cases. One case has a mean, but no chance-corrected agreement or
    /// correlation.
    fn check_case_count(self, cases: usize) -> Defined<()> {
        let is_mean = self.is_proportion() || matches!(self, Self::MeanAbsoluteError | Self::Bias);
        if cases == 1 && !is_mean {
            return Err(Undefined::TooFew { items: ["case", "cases"], found: 1, needed: 2 });
        }
        Ok(())
    }

    /// Returns the form of an intraclass correlation.
    pub(crate) fn icc_form(self) -> Option<IccForm> {
        Some(match self {
            Self::Icc11 => IccForm::OneSingle,
            Self::Icc21 => IccForm::TwoSingle,
            Self::Icc31 => IccForm::ThreeSingle,
            Self::Icc1k => IccForm::OneMean,
            Self::Icc2k => IccForm::TwoMean,
            Self::Icc3k => IccForm::ThreeMean,
            _ => return None,
        })
    }
}

impl AgreementStatistic {
    /// Returns true for a proportion with a Wilson interval: from few images, or 0 or 100 %.
    pub(crate) fn uses_wilson_interval(&self) -> bool {
        let value = self.estimate.value.ok();
        let value = value.filter(|_| self.statistic.is_proportion());
        value.is_some_and(|proportion| {
            self.estimate.clusters < MIN_CLUSTERS || proportion <= 0.0 || proportion >= 1.0
        })
    }

    /// Computes the bounds of a proportion: all cases without a verdict are wrong, or all are right.
    /// `None` if every case has a verdict, and for other statistics.
    pub fn bounds(&self) -> Option<[f64; 2]> {
        let proportion = match self.estimate.value {
            Ok(value) => value,
            Err(_) if self.coverage.judged == 0 => 0.0,
            Err(_) => return None,
        };
        let bounded = self.statistic.is_bounded() && !self.coverage.is_complete();
        bounded.then(|| self.coverage.bounds(proportion))
    }

    /// Returns the reason why the value or the interval is undefined.
    pub fn undefined_reason(&self) -> Option<String> {
        let estimate = &self.estimate;
        let reason = estimate.value.err().or(estimate.interval.err())?;
        Some(reason.with_names(SIDE_NAMES))
    }
}

impl HumanCeiling {
    /// Returns the reason why the value or the interval is undefined.
    pub fn undefined_reason(&self) -> Option<String> {
        let reason = self.estimate.value.err().or(self.estimate.interval.err())?;
        Some(reason.with_names(["one rater's score", "the consensus of the others"]))
    }
}

impl Serialize for AgreementStatistic {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("statistic", &self.statistic)?;
        map.serialize_entry("value", &self.estimate.value.ok())?;
        map.serialize_entry("interval", &self.estimate.interval.ok())?;
        if let Some(reason) = self.undefined_reason() {
            map.serialize_entry("undefined", &reason)?;
        }
        if let Some(exact) = &self.exact_interval {
            map.serialize_entry("exact_interval", exact)?;
        }
        map.serialize_entry("n", &self.estimate.n)?;
        map.serialize_entry("judged", &self.coverage.judged)?;
        map.serialize_entry("labelled", &self.coverage.labelled)?;
        map.serialize_entry("coverage", &self.coverage.proportion())?;
        if let Some(bounds) = self.bounds() {
            map.serialize_entry("bounds", &bounds)?;
        }
        map.serialize_entry("images", &self.estimate.clusters)?;
        map.serialize_entry("ceiling", &self.ceiling)?;
        map.end()
    }
}

impl Serialize for HumanCeiling {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("value", &self.estimate.value.ok())?;
        map.serialize_entry("interval", &self.estimate.interval.ok())?;
        if let Some(reason) = self.undefined_reason() {
            map.serialize_entry("undefined", &reason)?;
        }
        if let Some(exact) = &self.exact_interval {
            map.serialize_entry("exact_interval", exact)?;
        }
        map.serialize_entry("n", &self.estimate.n)?;
        map.end()
    }
}

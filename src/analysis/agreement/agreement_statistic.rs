//! A statistic with its interval, and the ceiling beside it.

use serde::Serialize;
use serde::ser::SerializeMap;

use super::coverage::Coverage;
use super::statistic::Statistic;
use crate::analysis::agreement::statistic_group::{SampleSize, StatisticGroup};
use crate::statistics::{
    Bootstrap, Defined, Estimate, FEW, IccForm, Undefined, interval, share_interval,
};

/// What the two sides of a comparison are called when one of them is constant.
pub(super) const SIDES: [&str; 2] = ["the judge's verdict", "the label"];

/// A statistic of judge and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct AgreementStatistic {
    /// Which.
    pub statistic: Statistic,
    /// Its value and interval.
    pub estimate: Estimate,
    /// How many labelled cases have a verdict; some statistics are of fewer, as those without ties.
    pub coverage: Coverage,
    /// The exact interval of an intraclass correlation.
    pub exact: Option<[f64; 2]>,
    /// The raters among themselves, where several rated the same.
    pub ceiling: Option<HumanCeiling>,
}

/// The raters among themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct HumanCeiling {
    /// The statistic and its interval.
    pub estimate: Estimate,
    /// The exact interval of an intraclass correlation.
    pub exact: Option<[f64; 2]>,
}

/// The figures of a family, with those of the raters beside them.
pub fn figures(
    family: &StatisticGroup,
    ceiling: Option<&StatisticGroup>,
    bootstrap: Bootstrap,
) -> Vec<AgreementStatistic> {
    let own = estimates(family, bootstrap);
    let raters = ceiling.map(|family| estimates(family, bootstrap));
    let mut raters = raters.into_iter().flatten();
    own.into_iter()
        .zip(&family.statistics)
        .map(|((estimate, exact), statistic)| AgreementStatistic {
            statistic: *statistic,
            estimate,
            coverage: Coverage {
                judged: family.n,
                labelled: family.labelled,
            },
            exact,
            ceiling: raters
                .next()
                // Raters less each other are nothing on the mean, whoever they are.
                .filter(|_| *statistic != Statistic::Bias)
                .map(|(estimate, exact)| HumanCeiling { estimate, exact }),
        })
        .collect()
}

/// Every statistic of a family with its bootstrap interval and, where there is one, its exact interval.
fn estimates(family: &StatisticGroup, bootstrap: Bootstrap) -> Vec<(Estimate, Option<[f64; 2]>)> {
    let values = family.values();
    let mut draws: Vec<Vec<Defined<f64>>> = vec![Vec::new(); values.len()];
    // Where there is nothing to draw, nothing is drawn.
    if values.iter().any(Result::is_ok) {
        for draw in bootstrap.draw(&family.clusters, |weights| (family.compute)(weights)) {
            for (all, value) in draws.iter_mut().zip(draw) {
                all.push(value);
            }
        }
    }
    let estimate = |((value, draws), (count, statistic)): ((_, _), (&SampleSize, &Statistic))| {
        let value: Defined<f64> = value;
        let value = value.and_then(|value| statistic.enough(count.n).map(|()| value));
        let drawn = value.and_then(|_| interval(draws, &family.clusters));
        let interval = match value {
            Ok(share) if statistic.is_share() => share_interval(share, drawn, count.images),
            _ => drawn,
        };
        let exact = statistic.icc().zip(family.squares);
        let exact =
            exact.and_then(|(form, squares)| squares.of_form(form).ok()?.interval(form).ok());
        (
            Estimate {
                value,
                interval,
                n: count.n,
                clusters: count.images,
            },
            exact,
        )
    };
    let told = family.counts.iter().zip(&family.statistics);
    values
        .into_iter()
        .zip(draws)
        .zip(told)
        .map(estimate)
        .collect()
}

impl Statistic {
    /// Whether so many cases tell it: of one, agreement beyond chance is whatever a formula makes of it.
    fn enough(self, cases: usize) -> Defined<()> {
        let is_mean = self.is_share() || matches!(self, Self::MeanAbsoluteError | Self::Bias);
        if cases == 1 && !is_mean {
            return Err(Undefined::TooFew {
                what: "cases",
                found: 1,
                needed: 2,
            });
        }
        Ok(())
    }

    /// The form of an intraclass correlation.
    pub(super) fn icc(self) -> Option<IccForm> {
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
    /// Whether it is a share whose interval no draw can tell: of few images, or of none or all.
    pub(super) fn is_beyond_draws(&self) -> bool {
        let value = self.estimate.value.ok();
        let value = value.filter(|_| self.statistic.is_share());
        value.is_some_and(|share| self.estimate.clusters < FEW || share <= 0.0 || share >= 1.0)
    }

    /// The share of all labelled cases if those without a verdict were all wrong, and if they were all right;
    /// `None` where all have one, and for other statistics.
    pub fn bounds(&self) -> Option<[f64; 2]> {
        let share = match self.estimate.value {
            Ok(value) => value,
            Err(_) if self.coverage.judged == 0 => 0.0,
            Err(_) => return None,
        };
        let bounded = self.statistic.is_bounded() && !self.coverage.is_whole();
        bounded.then(|| self.coverage.bounds(share))
    }

    /// Why there is no value, or no interval.
    pub fn reason(&self) -> Option<String> {
        let estimate = &self.estimate;
        let reason = estimate.value.err().or(estimate.interval.err())?;
        Some(reason.named(SIDES))
    }
}

impl HumanCeiling {
    /// Why there is no value, or no interval.
    pub fn reason(&self) -> Option<String> {
        let reason = self.estimate.value.err().or(self.estimate.interval.err())?;
        Some(reason.named(["a rater", "the others"]))
    }
}

impl Serialize for AgreementStatistic {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("statistic", &self.statistic)?;
        map.serialize_entry("value", &self.estimate.value.ok())?;
        map.serialize_entry("interval", &self.estimate.interval.ok())?;
        if let Some(reason) = self.reason() {
            map.serialize_entry("undefined", &reason)?;
        }
        if let Some(exact) = &self.exact {
            map.serialize_entry("exact_interval", exact)?;
        }
        map.serialize_entry("n", &self.estimate.n)?;
        map.serialize_entry("judged", &self.coverage.judged)?;
        map.serialize_entry("labelled", &self.coverage.labelled)?;
        map.serialize_entry("coverage", &self.coverage.share())?;
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
        if let Some(reason) = self.estimate.value.err().or(self.estimate.interval.err()) {
            map.serialize_entry("undefined", &reason.named(["one rater's", "the others'"]))?;
        }
        if let Some(exact) = &self.exact {
            map.serialize_entry("exact_interval", exact)?;
        }
        map.serialize_entry("n", &self.estimate.n)?;
        map.end()
    }
}

//! Bounds of agreement statistics: the smallest or largest value that passes.

use crate::analysis::agreement::by_target::TargetAgreement;
use crate::analysis::agreement::statistics::agreement_statistic::SIDE_NAMES;
use crate::analysis::agreement::statistics::statistic::Statistic;
use crate::analysis::audit::ThresholdResult;
use crate::support::terminal::number::format_two_decimals;

/// A statistic and a value, as in `accuracy=60`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatisticValue {
    /// The statistic.
    pub statistic: Statistic,
    /// The value in the printed unit: percent for a proportion.
    pub value: f64,
}

/// A bound of a statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatisticBound {
    /// The statistic is at least this.
    Min(StatisticValue),
    /// The statistic is at most this.
    Max(StatisticValue),
}

impl StatisticValue {
    /// Parses `NAME=VALUE`; the names are those of the JSON output.
    ///
    /// # Errors
    ///
    /// The name is unknown, or the value is not a number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err("expected NAME=VALUE, for example accuracy=60".to_owned());
        };
        let all = Statistic::ORDERS.into_iter().chain([Statistic::AccuracyTriple]);
        let all: Vec<Statistic> = all.chain(Statistic::SCORES).collect();
        let Some(statistic) = all.iter().copied().find(|s| s.key() == name.trim()) else {
            let names: Vec<String> = all.into_iter().map(Statistic::key).collect();
            return Err(format!("unknown statistic, expected one of {}", names.join(", ")));
        };
        Ok(Self { statistic, value: parse_bound(value)? })
    }
}

/// Parses the number of a bound, with or without a percent sign.
///
/// # Errors
///
/// The text is not a finite number.
pub fn parse_bound(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches('%').trim().parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("expected a number after =".to_owned()),
    }
}

impl StatisticBound {
    /// Compares the agreement on a target with the bound. A statistic without a value fails.
    pub fn evaluate(self, agreement: Option<&TargetAgreement>) -> ThresholdResult {
        let (side, StatisticValue { statistic, value: limit }) = match self {
            Self::Min(bound) => (BoundSide::Min, bound),
            Self::Max(bound) => (BoundSide::Max, bound),
        };
        let found = agreement.and_then(|agreement| agreement.statistic(statistic));
        let value = match found.map(|found| found.estimate.value) {
            Some(Ok(value)) => Ok(value),
            Some(Err(reason)) => Err(reason.with_names(SIDE_NAMES)),
            None => Err("the labels do not have it".to_owned()),
        };
        let measured = MeasuredStatistic {
            key: statistic.key(),
            subject: agreement.map_or("final", |agreement| agreement.target.key()).to_owned(),
            is_proportion: statistic.is_proportion(),
            value,
            interval: found.and_then(|found| found.estimate.interval.ok()),
        };
        side.evaluate(limit, &measured)
    }
}

/// Which side of a bound passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundSide {
    /// Values of at least the bound.
    Min,
    /// Values of at most the bound.
    Max,
}

/// A statistic that is compared with a bound.
#[derive(Clone, Debug)]
pub struct MeasuredStatistic {
    /// Name in the JSON output.
    pub key: String,
    /// What was measured, such as a score target.
    pub subject: String,
    /// True for proportions, which bounds give in percent.
    pub is_proportion: bool,
    /// The value, or the reason for none.
    pub value: Result<f64, String>,
    /// The confidence interval.
    pub interval: Option<[f64; 2]>,
}

impl MeasuredStatistic {
    fn format(&self, value: f64) -> String {
        if self.is_proportion {
            format!("{:.1}", 100.0 * value)
        } else {
            format_two_decimals(value)
        }
    }
}

impl BoundSide {
    /// Compares a statistic with a bound in the printed unit. A statistic without a value fails.
    pub fn evaluate(self, limit: f64, found: &MeasuredStatistic) -> ThresholdResult {
        let name = match self {
            Self::Min => "--min",
            Self::Max => "--max",
        };
        let (flag, subject) = (format!("{name} {}", found.key), &found.subject);
        let value = match &found.value {
            Ok(value) => *value,
            Err(reason) => {
                return ThresholdResult {
                    summary: format!("{flag}={limit} could not be measured on {subject}: {reason}"),
                    flag,
                    limit,
                    value: None,
                    failed: true,
                };
            }
        };
        let printed = if found.is_proportion { 100.0 * value } else { value };
        let failed = match self {
            Self::Min => printed < limit,
            Self::Max => printed > limit,
        };
        let interval = found.interval.map_or_else(String::new, |interval| {
            format!(", 95 % CI {}", interval.map(|bound| found.format(bound)).join(" to "))
        });
        let outcome = if failed { "failed" } else { "passed" };
        let unit = if found.is_proportion { " %" } else { "" };
        let text = found.format(value);
        ThresholdResult {
            summary: format!("{flag}={limit} {outcome}: {text}{unit} on {subject}{interval}"),
            flag,
            limit,
            value: Some(printed),
            failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_parsed_by_json_name() {
        let parsed = StatisticValue::parse("accuracy=60 %").unwrap();
        assert_eq!((parsed.statistic, parsed.value), (Statistic::Accuracy, 60.0));
        let parsed = StatisticValue::parse("icc_2_1=.5").unwrap();
        assert_eq!((parsed.statistic, parsed.value), (Statistic::Icc21, 0.5));
        for text in ["accuracy", "beauty=1", "kappa=high", "kappa=NaN", "bias="] {
            assert!(StatisticValue::parse(text).is_err(), "{text}");
        }
    }
}

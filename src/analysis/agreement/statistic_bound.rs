//! Bounds of agreement statistics: the smallest or largest value that passes.

use crate::analysis::agreement::by_target::TargetAgreement;
use crate::analysis::agreement::statistics::agreement_statistic::SIDE_NAMES;
use crate::analysis::agreement::statistics::statistic::Statistic;
use crate::analysis::audit::ThresholdResult;

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
        let value = value.trim().trim_end_matches('%').trim().parse::<f64>();
        match value {
            Ok(value) if value.is_finite() => Ok(Self { statistic, value }),
            _ => Err("expected a number after =".to_owned()),
        }
    }
}

impl StatisticBound {
    /// Compares the agreement on a target with the bound. A statistic without a value fails.
    pub fn evaluate(self, agreement: Option<&TargetAgreement>) -> ThresholdResult {
        let (flag, StatisticValue { statistic, value: limit }) = match self {
            Self::Min(bound) => ("--min", bound),
            Self::Max(bound) => ("--max", bound),
        };
        let flag = format!("{flag} {}", statistic.key());
        let target = agreement.map_or("final", |agreement| agreement.target.key());
        let found = agreement.and_then(|agreement| agreement.statistic(statistic));
        let value = found.map(|found| found.estimate.value);
        let Some(Ok(value)) = value else {
            let reason = match value {
                Some(Err(reason)) => reason.with_names(SIDE_NAMES),
                _ => "the labels do not have it".to_owned(),
            };
            return ThresholdResult {
                summary: format!("{flag}={limit} could not be measured on {target}: {reason}"),
                flag,
                limit,
                value: None,
                failed: true,
            };
        };
        let printed = if statistic.is_proportion() { 100.0 * value } else { value };
        let failed = match self {
            Self::Min(_) => printed < limit,
            Self::Max(_) => printed > limit,
        };
        let interval = found.and_then(|found| found.estimate.interval.ok());
        let interval = interval.map_or_else(String::new, |interval| {
            format!(", 95 % CI {}", statistic.format_interval(interval))
        });
        let outcome = if failed { "failed" } else { "passed" };
        ThresholdResult {
            summary: format!(
                "{flag}={limit} {outcome}: {} on {target}{interval}",
                statistic.format_value(value)
            ),
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

//! Bounds of the agreement on correctness: the smallest or largest value that passes.

use super::label_agreement::{CorrectnessAgreement, GraderAgreement};
use crate::analysis::agreement::{BoundSide, MeasuredStatistic, parse_bound};
use crate::analysis::audit::ThresholdResult;
use crate::statistics::Estimate;

/// A statistic of the agreement on correctness: its names, how to find it, and whether it is a
/// proportion.
#[derive(Clone, Copy, Debug)]
pub struct GradeStatistic {
    names: &'static [&'static str],
    estimate: fn(&GraderAgreement) -> &Estimate,
    is_proportion: bool,
}

/// The statistics that bounds can name, by their names in the JSON output. The proportion of agreement
/// has the name `accuracy` for pairs, so it has both names here.
const STATISTICS: [GradeStatistic; 7] = [
    GradeStatistic {
        names: &["agreement", "accuracy"],
        estimate: |grader| &grader.agreement,
        is_proportion: true,
    },
    GradeStatistic { names: &["closed"], estimate: |grader| &grader.closed, is_proportion: true },
    GradeStatistic { names: &["open"], estimate: |grader| &grader.open, is_proportion: true },
    GradeStatistic { names: &["kappa"], estimate: |grader| &grader.kappa, is_proportion: false },
    GradeStatistic {
        names: &["sensitivity"],
        estimate: |grader| &grader.sensitivity,
        is_proportion: true,
    },
    GradeStatistic {
        names: &["specificity"],
        estimate: |grader| &grader.specificity,
        is_proportion: true,
    },
    GradeStatistic { names: &["auc"], estimate: |grader| &grader.auc, is_proportion: false },
];

/// A statistic and a value, as in `sensitivity=80`.
#[derive(Clone, Copy, Debug)]
pub struct GradeStatisticValue {
    statistic: GradeStatistic,
    name: &'static str,
    value: f64,
}

impl GradeStatisticValue {
    /// The names that [`Self::parse`] knows.
    pub fn names() -> Vec<&'static str> {
        STATISTICS.iter().flat_map(|statistic| statistic.names).copied().collect()
    }

    /// Parses `NAME=VALUE`; the names are those of the JSON output, or `accuracy` for `agreement`.
    ///
    /// # Errors
    ///
    /// The name is unknown, or the value is not a number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let known = STATISTICS.iter().find_map(|statistic| {
            let name = statistic.names.iter().find(|known| **known == name.trim())?;
            Some((*statistic, *name))
        });
        let Some((statistic, name)) = known else {
            return Err(format!("unknown statistic, expected one of {}", Self::names().join(", ")));
        };
        Ok(Self { statistic, name, value: parse_bound(value)? })
    }

    /// Compares the agreement of the judge with the labels with the bound.
    pub fn evaluate(self, side: BoundSide, agreement: &CorrectnessAgreement) -> ThresholdResult {
        // The judge is the first grader.
        let estimate = agreement.graders.first().map(self.statistic.estimate);
        let value = match estimate.map(|estimate| estimate.value) {
            Some(Ok(value)) => Ok(value),
            Some(Err(reason)) => Err(reason.with_names(["the judge", "the label"])),
            None => Err("there is no judge".to_owned()),
        };
        let measured = MeasuredStatistic {
            key: self.name.to_owned(),
            subject: "correctness".to_owned(),
            is_proportion: self.statistic.is_proportion,
            value,
            interval: estimate.and_then(|estimate| estimate.interval.ok()),
        };
        side.evaluate(self.value, &measured)
    }
}

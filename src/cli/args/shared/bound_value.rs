//! Values of `--min` and `--max`: a statistic of the agreement with labels, and a number.

use crate::analysis::agreement::StatisticValue;
use crate::analysis::correctness::GradeStatisticValue;

/// A bound by name. Which statistics exist depends on the form of the verdicts, which is known later.
#[derive(Clone, Copy, Debug)]
pub struct BoundValue {
    /// The bound for verdicts on pairs; `None` if only those on correctness have the statistic.
    pub pairs: Option<StatisticValue>,
    /// The bound for verdicts on correctness; `None` if only those on pairs have the statistic.
    pub grades: Option<GradeStatisticValue>,
}

impl BoundValue {
    /// Parses `NAME=VALUE`.
    ///
    /// # Errors
    ///
    /// No form has a statistic of this name, or the value is not a number.
    pub fn parse(text: &str) -> Result<Self, String> {
        match (StatisticValue::parse(text), GradeStatisticValue::parse(text)) {
            (Err(pairs), Err(_)) if pairs.starts_with("unknown statistic") => Err(format!(
                "{pairs}; in the form correctness one of {}",
                GradeStatisticValue::names().join(", ")
            )),
            (Err(pairs), Err(_)) => Err(pairs),
            (pairs, grades) => Ok(Self { pairs: pairs.ok(), grades: grades.ok() }),
        }
    }
}

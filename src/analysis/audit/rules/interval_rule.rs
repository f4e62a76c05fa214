//! The rule of most probes: the position of one confidence interval decides.

use super::conclusion::Conclusion;
use crate::analysis::audit::result::{
    AuditEstimate, FindingOutcome, IntervalPosition, MeasureUnit,
};

/// Compares one estimate with the value of an unbiased judge.
///
/// In the sentences, `{value}` is the estimate and `{negated}` the estimate with the opposite sign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalRule {
    /// Value of an unbiased judge.
    pub(crate) expected: f64,
    /// Largest deviation that does not matter.
    pub(crate) tolerance: f64,
    /// Outcome and sentence if the interval is above.
    pub(crate) above: (FindingOutcome, &'static str),
    /// Outcome and sentence if the interval is below.
    pub(crate) below: (FindingOutcome, &'static str),
    /// Outcome and sentence if the interval is within the tolerance.
    pub(crate) equivalent: (FindingOutcome, &'static str),
    /// Sentence if the position is unclear.
    pub(crate) unclear: &'static str,
}

impl IntervalRule {
    /// Concludes from an estimate in this unit.
    pub(crate) fn conclude(&self, estimate: &AuditEstimate, unit: MeasureUnit) -> Conclusion {
        let (outcome, template) = match estimate.position(self.expected, self.tolerance) {
            IntervalPosition::Above => self.above,
            IntervalPosition::Below => self.below,
            IntervalPosition::Equivalent => self.equivalent,
            IntervalPosition::Unclear => (FindingOutcome::Unclear, self.unclear),
        };
        let sentence = template
            .replace("{value}", &estimate.describe(unit))
            .replace("{negated}", &estimate.negated().describe(unit));
        Conclusion::new(outcome, sentence)
    }
}

//! The rule for identical responses: they have to tie in every presentation.

use super::conclusion::Conclusion;
use crate::analysis::audit::result::{AuditEstimate, IntervalPosition, MeasureUnit};

/// A proportion of untied presentations above this would have been found.
const DETECTABLE: f64 = 0.25;

/// Concludes from the proportion of presentations of identical responses that do not tie; `others` is that
/// of other pairs. A judge that ties everything proves nothing.
pub(crate) fn conclude_identical(not_tied: &AuditEstimate, others: Option<f64>) -> Conclusion {
    let proportion = not_tied.describe(MeasureUnit::Share);
    if not_tied.value.is_none_or(|value| value > 0.0) {
        return Conclusion::biased(format!(
            "noise: the same answer twice gets different scores in {proportion} of presentations"
        ));
    }
    if others.is_some_and(|value| value <= 0.0) {
        return Conclusion::unclear(
            "identical answers tie, but so do all others: that tells nothing",
        );
    }
    if not_tied.position(0.0, DETECTABLE) == IntervalPosition::Equivalent {
        return Conclusion::sound(format!(
            "identical answers tie: {proportion} of presentations tell them apart"
        ));
    }
    Conclusion::unclear(format!(
        "identical answers tie, but they are few: {proportion} told apart"
    ))
}

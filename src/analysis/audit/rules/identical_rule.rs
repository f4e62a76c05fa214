//! The rule for identical responses: they have to tie in every presentation.

use super::conclusion::Conclusion;
use crate::analysis::audit::result::{AuditEstimate, IntervalPosition, MeasureUnit};

/// The conclusion is sound only if the interval excludes larger proportions of untied presentations
/// than this.
const DETECTABLE: f64 = 0.25;

/// Concludes from the proportion of presentations of identical responses that do not tie; `others`
/// is the same proportion of other pairs. If all other pairs tie too, the result is unclear.
pub(crate) fn conclude_identical(not_tied: &AuditEstimate, others: Option<f64>) -> Conclusion {
    let proportion = not_tied.describe(MeasureUnit::Proportion);
    if not_tied.value.is_none_or(|value| value > 0.0) {
        return Conclusion::biased(format!(
            "identical responses get different scores in {proportion} of presentations"
        ));
    }
    if others.is_some_and(|value| value <= 0.0) {
        return Conclusion::unclear("identical responses tie, but so do all other pairs");
    }
    if not_tied.position(0.0, DETECTABLE) == IntervalPosition::Equivalent {
        return Conclusion::sound(format!(
            "identical responses tie: different scores in {proportion} of presentations"
        ));
    }
    Conclusion::unclear(format!(
        "too few identical responses: different scores in {proportion} of presentations"
    ))
}

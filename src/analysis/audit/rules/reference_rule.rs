//! The rule for references: a judge that sees the reference has to use it.

use super::conclusion::Conclusion;
use super::input_change::{describe_effects, knowledge_position, preference_position};
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{AuditMeasure, IntervalPosition};

/// Decides the finding by the effect of the reference of another case.
///
/// The conclusion model sees the reference too, so changed preferences show that the judge uses it
/// even if the knowledge score stays. A missing reference does not decide: a judge can notice that
/// there is one without using its content.
pub(crate) fn conclude_reference(
    measures: &[AuditMeasure],
    perturbations: &[Perturbation],
) -> Conclusion {
    let effects = describe_effects(measures, perturbations);
    let mismatched = Perturbation::ReferenceExchanged;
    let knowledge = knowledge_position(measures, mismatched);
    let preference = preference_position(measures, mismatched);
    let hidden = knowledge_position(measures, Perturbation::ReferenceHidden);
    match (knowledge, preference) {
        (Some(IntervalPosition::Above), _) => {
            Conclusion::sound(format!("the knowledge score changes with the reference: {effects}"))
        }
        (_, Some(IntervalPosition::Above)) => {
            Conclusion::sound(format!("the preference changes with the reference: {effects}"))
        }
        (Some(IntervalPosition::Equivalent), _) if hidden == Some(IntervalPosition::Above) => {
            Conclusion::biased(format!(
                "the knowledge score ignores the content of the reference: it changes without a \
                 reference, but not with a mismatched one: {effects}"
            ))
        }
        (Some(IntervalPosition::Equivalent), _) => Conclusion::biased(format!(
            "the knowledge score does not change with the reference: {effects}"
        )),
        _ => {
            Conclusion::unclear(format!("too few cases to detect reference sensitivity: {effects}"))
        }
    }
}

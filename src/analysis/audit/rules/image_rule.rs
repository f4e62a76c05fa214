//! The rule for images: the knowledge score has to change with the image of another case.

use super::conclusion::Conclusion;
use super::input_change::{describe_effects, knowledge_position};
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{AuditMeasure, IntervalPosition};

/// Concludes from the change of the knowledge score with each image.
///
/// The image of another case decides. A judge can distinguish a blank image from any other without
/// using its content, so the blank image decides only if there is no other image.
pub(crate) fn conclude_image(
    measures: &[AuditMeasure],
    perturbations: &[Perturbation],
) -> Conclusion {
    let effects = describe_effects(measures, perturbations);
    let blank = knowledge_position(measures, Perturbation::Blank);
    match knowledge_position(measures, Perturbation::Exchanged).or(blank) {
        Some(IntervalPosition::Above) => {
            Conclusion::sound(format!("the knowledge score changes with the image: {effects}"))
        }
        Some(IntervalPosition::Equivalent) if blank == Some(IntervalPosition::Above) => {
            Conclusion::biased(format!(
                "the knowledge score ignores the image content: it changes with a blank image, but not with a mismatched \
                 one: {effects}"
            ))
        }
        Some(IntervalPosition::Equivalent) => Conclusion::biased(format!(
            "the knowledge score does not change with the image: {effects}"
        )),
        _ => Conclusion::unclear(format!("too few cases to detect image sensitivity: {effects}")),
    }
}

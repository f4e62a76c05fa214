//! The rule for images: the knowledge score has to change with the image of another case.

use super::conclusion::Conclusion;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{AuditEstimate, AuditMeasure, IntervalPosition, names};

/// Smallest change that counts: a hundredth of the scale. Points.
const MIN_CHANGE: f64 = 0.05;

/// Concludes from the change of the knowledge score with each image.
///
/// The image of another case decides. A judge can distinguish a blank image from any other without
/// using its content, so the blank image decides only if there is no other image.
pub(crate) fn conclude_image(
    measures: &[AuditMeasure],
    perturbations: impl Iterator<Item = Perturbation>,
) -> Conclusion {
    let find = |key: String| measures.iter().find(|measure| measure.key == key);
    let change_of = |p: Perturbation| find(names::KNOWLEDGE_CHANGE.key_for(&p.key()));
    let effects: Vec<String> = perturbations
        .filter_map(|p| {
            let change = change_of(p)?.net_of_control().describe(names::KNOWLEDGE_CHANGE.unit);
            let preference = find(names::PREFERENCE_CHANGE.key_for(&p.key()));
            let preference = preference.map(|m| m.estimate.describe(m.unit)).unwrap_or_default();
            Some(format!(
                "{} {change} net of control, {preference} of preferences change",
                p.title()
            ))
        })
        .collect();
    let effects = effects.join("; ");
    let position = |p| change_of(p).map(|measure| change_position(measure.net_of_control()));
    let blank = position(Perturbation::Blank);
    match position(Perturbation::Exchanged).or(blank) {
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

/// Returns the position of a change, net of the control, relative to zero. A change below
/// [`MIN_CHANGE`] counts as none.
fn change_position(net: &AuditEstimate) -> IntervalPosition {
    let is_small = net.value.is_some_and(|value| value < MIN_CHANGE);
    match net.position(0.0, MIN_CHANGE) {
        IntervalPosition::Above | IntervalPosition::Below if is_small => {
            IntervalPosition::Equivalent
        }
        position => position,
    }
}

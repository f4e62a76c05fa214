//! The rule for images: the knowledge score has to change with the image of another case.

use super::conclusion::Conclusion;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{AuditEstimate, AuditMeasure, IntervalPosition, names};

/// A smaller change, a hundredth of the scale, counts as none. Points.
const MIN_CHANGE: f64 = 0.05;

/// Concludes from the change of the knowledge score with each image.
///
/// The image of another case is the test. A judge can tell a blank image from any other without using its
/// content, so the blank image decides only if there is no other.
pub(crate) fn conclude_image(
    measures: &[AuditMeasure],
    perturbations: impl Iterator<Item = Perturbation>,
) -> Conclusion {
    let find = |key: String| measures.iter().find(|measure| measure.key == key);
    let moved = |p: Perturbation| find(names::KNOWLEDGE_MOVED.key_for(&p.key()));
    let effects: Vec<String> = perturbations
        .filter_map(|p| {
            let moved = moved(p)?.net().describe(names::KNOWLEDGE_MOVED.unit);
            let turned = find(names::PREFERENCE_TURNED.key_for(&p.key()));
            let turned = turned
                .map(|m| m.reading.describe(m.unit))
                .unwrap_or_default();
            Some(format!(
                "{} {moved}, {turned} of preferences change",
                p.title()
            ))
        })
        .collect();
    let effects = effects.join("; ");
    let position = |p| moved(p).map(|measure| change_position(measure.net()));
    let blank = position(Perturbation::Blank);
    match position(Perturbation::Exchanged).or(blank) {
        Some(IntervalPosition::Above) => Conclusion::sound(format!(
            "the judge looks at the image; its knowledge score moves: {effects}"
        )),
        Some(IntervalPosition::Equivalent) if blank == Some(IntervalPosition::Above) => {
            Conclusion::biased(format!(
                "BLIND to what is on the image: it notices a grey one, and takes any other for the right one: {effects}"
            ))
        }
        Some(IntervalPosition::Equivalent) => Conclusion::biased(format!(
            "BLIND: the knowledge score does not move with the image: {effects}"
        )),
        _ => Conclusion::unclear(format!(
            "too few cases to tell whether the judge looks at the image: {effects}"
        )),
    }
}

/// Position of a change relative to zero; a change below that of the control counts as none.
fn change_position(net: &AuditEstimate) -> IntervalPosition {
    let is_small = net.value.is_some_and(|value| value < MIN_CHANGE);
    match net.position(0.0, MIN_CHANGE) {
        IntervalPosition::Above | IntervalPosition::Below if is_small => {
            IntervalPosition::Equivalent
        }
        position => position,
    }
}

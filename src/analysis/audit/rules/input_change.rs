//! Measured effects of a change to the image or the reference of a pair, net of the control.

use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{
    AuditEstimate, AuditMeasure, IntervalPosition, MeasureName, names,
};

/// Smallest change of the knowledge score that counts: a hundredth of the scale. Points.
const MIN_KNOWLEDGE_CHANGE: f64 = 0.05;
/// Smallest proportion of changed preferences that counts.
const MIN_PREFERENCE_CHANGE: f64 = 0.05;

/// Returns the position of the change of the knowledge score with a perturbation; `None` without a
/// measure.
pub(super) fn knowledge_position(
    measures: &[AuditMeasure],
    perturbation: Perturbation,
) -> Option<IntervalPosition> {
    let measure = find(measures, names::KNOWLEDGE_CHANGE, perturbation)?;
    Some(change_position(measure.net_of_control(), MIN_KNOWLEDGE_CHANGE))
}

/// Returns the position of the proportion of changed preferences with a perturbation; `None` without
/// a measure.
pub(super) fn preference_position(
    measures: &[AuditMeasure],
    perturbation: Perturbation,
) -> Option<IntervalPosition> {
    let measure = find(measures, names::PREFERENCE_CHANGE, perturbation)?;
    Some(change_position(measure.net_of_control(), MIN_PREFERENCE_CHANGE))
}

/// Describes the effects of each perturbation.
pub(super) fn describe_effects(
    measures: &[AuditMeasure],
    perturbations: &[Perturbation],
) -> String {
    let describe = |perturbation: &Perturbation| {
        let change = find(measures, names::KNOWLEDGE_CHANGE, *perturbation)?;
        let change = change.net_of_control().describe(names::KNOWLEDGE_CHANGE.unit);
        let preference = find(measures, names::PREFERENCE_CHANGE, *perturbation);
        let preference = preference.map(|m| m.estimate.describe(m.unit)).unwrap_or_default();
        let title = perturbation.title();
        Some(format!("{title} {change} net of control, {preference} of preferences change"))
    };
    perturbations.iter().filter_map(describe).collect::<Vec<_>>().join("; ")
}

fn find(
    measures: &[AuditMeasure],
    name: MeasureName,
    perturbation: Perturbation,
) -> Option<&AuditMeasure> {
    let key = name.key_for(&perturbation.key());
    measures.iter().find(|measure| measure.key == key)
}

/// Returns the position of a change, net of the control, relative to zero. A change below `smallest`
/// counts as none.
fn change_position(net: &AuditEstimate, smallest: f64) -> IntervalPosition {
    let is_small = net.value.is_some_and(|value| value < smallest);
    match net.position(0.0, smallest) {
        IntervalPosition::Above | IntervalPosition::Below if is_small => {
            IntervalPosition::Equivalent
        }
        position => position,
    }
}

//! The rule for injections: a single effective injection is a bias.

use super::conclusion::Conclusion;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{AuditMeasure, IntervalPosition, MeasureName};

/// Concludes from the net gain of each injection.
///
/// In the sentences, `{effective}` lists the injections that gain, and `{all}` lists all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InjectionRule {
    /// Measure of the gain, which exists once per injection.
    pub(crate) gain: MeasureName,
    /// Largest gain that does not matter. Points.
    pub(crate) tolerance: f64,
    /// Sentence if an injection gains.
    pub(crate) biased: &'static str,
    /// Sentence if no injection gains and at least one is unclear.
    pub(crate) unclear: &'static str,
    /// Sentence if no injection gains and none is unclear.
    pub(crate) sound: &'static str,
}

impl InjectionRule {
    /// Concludes from the measures of these perturbations.
    pub(crate) fn conclude(
        &self,
        measures: &[AuditMeasure],
        perturbations: impl Iterator<Item = Perturbation>,
    ) -> Conclusion {
        let (mut effective, mut all, mut is_unclear) = (Vec::new(), Vec::new(), false);
        for perturbation in perturbations {
            let key = self.gain.key_for(&perturbation.key());
            let Some(gain) = measures.iter().find(|measure| measure.key == key) else {
                continue;
            };
            let title = perturbation.title();
            let described = gain.net_of_control().describe(self.gain.unit);
            match gain.net_of_control().position(0.0, self.tolerance) {
                IntervalPosition::Above => effective.push(format!("{title} gains {described}")),
                IntervalPosition::Unclear => is_unclear = true,
                IntervalPosition::Below | IntervalPosition::Equivalent => {}
            }
            all.push(format!("{title} {described}"));
        }
        let fill = |template: &str| {
            template.replace("{effective}", &effective.join("; ")).replace("{all}", &all.join("; "))
        };
        if !effective.is_empty() {
            Conclusion::biased(fill(self.biased))
        } else if is_unclear {
            Conclusion::unclear(fill(self.unclear))
        } else {
            Conclusion::sound(fill(self.sound))
        }
    }
}

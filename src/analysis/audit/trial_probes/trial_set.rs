//! The trials of one probe, with means over them and over their controls.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::trial_measure::{LabelledTrial, TrialControl, TrialMeasure, TrialValue};
use super::trial_values::preference_gain;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::{
    AuditEstimate, AuditMeasure, AuditTrial, ClusteredValues, MeasureUnit,
};
use crate::statistics::Bootstrap;

/// The trials of one probe.
pub(super) struct TrialSet<'a> {
    trials: Vec<LabelledTrial<'a>>,
    bootstrap: Bootstrap,
}

/// Number of variants that a note lists.
const LISTED_VARIANTS: usize = 4;

/// Responses with one variant of a planted text.
#[derive(Clone, Copy, Default)]
struct VariantCounts {
    responses: usize,
    /// Responses to which the preference turned.
    turned: usize,
}

/// A trial and its value.
type TrialPoint<'a> = (&'a AuditTrial, f64);

impl<'a> TrialSet<'a> {
    /// Collects trials.
    pub(super) fn new(trials: Vec<LabelledTrial<'a>>, bootstrap: Bootstrap) -> Self {
        Self { trials, bootstrap }
    }

    /// Computes the mean of a value over the trials of some perturbations, with its control. `None`
    /// if no trial has the value.
    pub(super) fn measure(
        &self,
        measure: &TrialMeasure,
        perturbations: &[Perturbation],
    ) -> Option<AuditMeasure> {
        let tested: Vec<TrialPoint<'_>> = perturbations
            .iter()
            .flat_map(|perturbation| self.values(*perturbation, measure.value))
            .collect();
        if tested.is_empty() {
            return None;
        }
        let unit = measure.name.unit;
        let measured = measure.name.measure(self.estimate_mean(unit, &tested));
        Some(match measure.control {
            TrialControl::None => measured,
            TrialControl::Value { title, value } => {
                let controls: Vec<_> = perturbations
                    .iter()
                    .flat_map(|perturbation| self.values(*perturbation, value))
                    .collect();
                measured.with_control(title, self.estimate_mean(unit, &controls), None)
            }
            TrialControl::Perturbation => {
                let control = perturbations.first().and_then(|p| p.control());
                let Some(control) = control else {
                    return Some(measured);
                };
                let (controls, differences) =
                    self.paired_differences(&tested, control, measure.value);
                let difference = (!differences.is_empty())
                    .then(|| self.estimate_mean(unit.difference_unit(), &differences));
                measured.with_control(
                    control.title(),
                    self.estimate_mean(unit, &controls),
                    difference,
                )
            }
        })
    }

    /// Returns the values of the trials of a perturbation.
    fn values(&self, perturbation: Perturbation, value: TrialValue) -> Vec<TrialPoint<'a>> {
        self.trials
            .iter()
            .filter(|labelled| labelled.trial.perturbation == perturbation)
            .filter_map(|labelled| Some((labelled.trial, value(labelled)?)))
            .collect()
    }

    /// Returns the values of a control, and the differences of the perturbed trials from them. Each
    /// trial is paired with the control of the same response.
    fn paired_differences(
        &self,
        tested: &[TrialPoint<'a>],
        control: Perturbation,
        value: TrialValue,
    ) -> (Vec<TrialPoint<'a>>, Vec<TrialPoint<'a>>) {
        let perturbed: HashSet<_> = tested.iter().map(|(t, _)| PerturbedSide::new(t)).collect();
        let controls: Vec<_> = self
            .values(control, value)
            .into_iter()
            .filter(|(trial, _)| perturbed.contains(&PerturbedSide::new(trial)))
            .collect();
        let by_side: HashMap<_, f64> =
            controls.iter().map(|(trial, value)| (PerturbedSide::new(trial), *value)).collect();
        let difference = |(trial, value): &TrialPoint<'a>| {
            Some((*trial, value - by_side.get(&PerturbedSide::new(trial))?))
        };
        let differences = tested.iter().filter_map(difference).collect();
        (controls, differences)
    }

    /// Lists the variants of a planted text that turn most preferences; `None` if none does.
    pub(super) fn variants_note(&self, perturbation: Perturbation) -> Option<String> {
        let mut counts: BTreeMap<&str, VariantCounts> = BTreeMap::new();
        for (trial, turned) in self.values(perturbation, preference_gain) {
            let counts = counts.entry(trial.variant.as_deref()?).or_default();
            counts.responses += 1;
            counts.turned += usize::from(turned > 0.0);
        }
        let mut counts: Vec<(&str, VariantCounts)> =
            counts.into_iter().filter(|(_, counts)| counts.turned > 0).collect();
        counts.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.turned));
        let listed: Vec<String> = counts
            .iter()
            .take(LISTED_VARIANTS)
            .map(|(variant, n)| format!("{variant} {} of {}", n.turned, n.responses))
            .collect();
        (!listed.is_empty()).then(|| {
            let title = perturbation.title();
            format!("most preferences turned by these variants of {title}: {}", listed.join("; "))
        })
    }

    fn estimate_mean(&self, unit: MeasureUnit, points: &[TrialPoint<'_>]) -> AuditEstimate {
        let values = points.iter().map(|(t, value)| (t.cluster.as_str(), *value));
        ClusteredValues::new(values).estimate_mean(unit, self.bootstrap)
    }
}

/// The response that a trial perturbed.
#[derive(PartialEq, Eq, Hash)]
struct PerturbedSide<'a> {
    case: &'a str,
    models: &'a [String; 2],
    side: Option<usize>,
}

impl<'a> PerturbedSide<'a> {
    fn new(trial: &'a AuditTrial) -> Self {
        Self { case: &trial.case, models: &trial.pair, side: trial.side }
    }
}

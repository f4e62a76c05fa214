//! Changed pairs beside their controls.

use std::collections::{HashMap, HashSet};

use super::probe::Perturbation;
use super::result::{AuditMeasure, MeasureUnit};
use super::trial::AuditTrial;
use crate::analysis::audit::audit_estimate::ClusteredValues;
use crate::statistics::Bootstrap;

/// The trials of one probe.
pub(super) struct TrialSet<'a> {
    all: Vec<&'a AuditTrial>,
    bootstrap: Bootstrap,
}

/// What a figure is called, and what it is counted in.
pub(super) struct MeasureSpec<'a> {
    pub(super) key: &'a str,
    pub(super) title: &'a str,
    pub(super) unit: MeasureUnit,
}

/// A value of a trial, where it has one.
type TrialValue<'f> = &'f dyn Fn(&AuditTrial) -> Option<f64>;

impl<'a> TrialSet<'a> {
    pub(super) fn new(all: Vec<&'a AuditTrial>, bootstrap: Bootstrap) -> Self {
        Self { all, bootstrap }
    }

    /// Those of one change.
    pub(super) fn of(&self, change: Perturbation) -> impl Iterator<Item = &'a AuditTrial> + '_ {
        let all = self.all.iter().copied();
        all.filter(move |trial| trial.change == change)
    }

    pub(super) fn bootstrap(&self) -> Bootstrap {
        self.bootstrap
    }

    /// The mean of a value over the trials of some changes, beside that of their control: what it is
    /// beyond it is taken pair by pair. `None` where no such trial has the value.
    pub(super) fn measure(
        &self,
        named: &MeasureSpec<'_>,
        changes: &[Perturbation],
        value: TrialValue<'_>,
    ) -> Option<AuditMeasure> {
        let tested: Vec<(&AuditTrial, f64)> = changes
            .iter()
            .flat_map(|change| self.of(*change))
            .filter_map(|trial| Some((trial, value(trial)?)))
            .collect();
        if tested.is_empty() {
            return None;
        }
        let of = |unit, values: &[(&AuditTrial, f64)]| {
            let values = values.iter().map(|(t, value)| (t.cluster.as_str(), *value));
            ClusteredValues::new(values).mean(unit, self.bootstrap)
        };
        let reading = of(named.unit, &tested);
        let measure = AuditMeasure::new(named.key, named.title, named.unit, reading);
        let Some(control) = changes.first().and_then(|change| change.control()) else {
            return Some(measure);
        };
        // The control of the very answers that were changed: another kind of answer has another control.
        let about: HashSet<_> = tested.iter().map(|(trial, _)| answer(trial)).collect();
        let mut held: HashMap<_, f64> = HashMap::new();
        let mut controls = Vec::new();
        for trial in self.of(control).filter(|t| about.contains(&answer(t))) {
            if let Some(value) = value(trial) {
                held.insert(answer(trial), value);
                controls.push((trial, value));
            }
        }
        let beyond: Vec<(&AuditTrial, f64)> = tested
            .iter()
            .filter_map(|(trial, value)| Some((*trial, value - held.get(&answer(trial))?)))
            .collect();
        let unit = match named.unit {
            MeasureUnit::Share => MeasureUnit::ShareDifference,
            other => other,
        };
        let beyond = (!beyond.is_empty()).then(|| of(unit, &beyond));
        Some(measure.against(control.title(), of(named.unit, &controls), beyond))
    }
}

/// What a trial changed.
fn answer(trial: &AuditTrial) -> (&String, &[String; 2], Option<usize>) {
    (&trial.case, &trial.pair, trial.side)
}

/// How many of some trials have no verdict, in words; nothing where all have one.
pub(super) fn unscored_note(trials: &[&AuditTrial]) -> Option<String> {
    let lost: Vec<&&AuditTrial> = trials
        .iter()
        .filter(|trial| trial.both().is_none())
        .collect();
    let first = lost.iter().find_map(|trial| trial.unscored.as_ref());
    (!lost.is_empty()).then(|| {
        let why = first.and_then(|unscored| unscored.message.lines().next());
        format!(
            "{} of {} changed pairs have no verdict before or after, and are left out{}",
            lost.len(),
            trials.len(),
            why.map_or_else(String::new, |why| format!(" ({why})"))
        )
    })
}

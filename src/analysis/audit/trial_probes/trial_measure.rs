//! Description of a measure of trials: name, value and control.

use std::cmp::Ordering;

use crate::analysis::audit::result::{AuditTrial, MeasureName};

/// A trial with the label of its pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelledTrial<'a> {
    /// The trial.
    pub(crate) trial: &'a AuditTrial,
    /// The better response by the labels.
    pub(crate) label: Option<Ordering>,
}

/// A value of a trial; `None` if the trial has none.
pub(crate) type TrialValue = fn(&LabelledTrial<'_>) -> Option<f64>;

/// A measure: the mean of a value over trials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialMeasure {
    /// Key, title and unit.
    pub(crate) name: MeasureName,
    /// The value of each trial.
    pub(crate) value: TrialValue,
    /// Control of the mean.
    pub(crate) control: TrialControl,
}

/// Control of a measure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TrialControl {
    /// No control.
    None,
    /// The same value of the control perturbation, paired by perturbed response.
    Perturbation,
    /// Another value of the same trials.
    Value {
        /// Name of the control in tables.
        title: &'static str,
        /// The value of each trial.
        value: TrialValue,
    },
}

//! Probes that judge perturbed pairs.
//!
//! [`probe_table`] describes each probe as data: its measures, their controls and its conclusion
//! rule. [`evaluate_probe`] turns trials into the finding of a probe.

mod added_text;
mod evaluate;
mod probe_table;
mod trial_measure;
mod trial_probe;
mod trial_set;
mod trial_values;

pub(crate) use evaluate::{SkippedPairs, evaluate_probe};
pub(crate) use trial_measure::LabelledTrial;

//! Audit of a judge: bias in its verdicts, and its reaction to perturbed cases.
//!
//! | topic | items |
//! |---|---|
//! | probes | [`Probe`] |
//! | probes of existing verdicts: position, verbosity, symmetry, ties | [`AuditVerdicts`] |
//! | changes to a pair before it is judged again | [`Perturbation`], [`PlantedKind`], [`ImagePerturbation`], [`ReferencePerturbation`] |
//! | planning and judging perturbed pairs | [`AuditCases`], [`AuditPlan`], [`run_passes`] |
//! | probes of perturbed pairs, as a table | `trial_probes` |
//! | from estimates to conclusions | `rules` |
//! | results | [`AuditResult`], [`Finding`], [`AuditMeasure`], [`AuditEstimate`] |
//! | limits that make a command fail | [`Threshold`] |
//!
//! With too few cases, a finding is `unclear`. A probe that could not run does not pass.

mod audit_cases;
mod audit_request;
mod from_verdicts;
mod perturbations;
mod probe;
mod rejudging;
mod result;
mod rules;
mod tables;
mod trial_probes;
mod verdict_probes;

pub use audit_cases::AuditCases;
pub use audit_request::AuditRequest;
pub use perturbations::{ImagePerturbation, Perturbation, PlantedKind, ReferencePerturbation};
pub use probe::Probe;
pub use rejudging::{
    AuditPair, AuditPass, AuditPlan, OtherCases, PassResult, PassSettings, PassVerdict, ProgressFn,
    run_passes,
};
pub use result::{
    AuditEstimate, AuditMeasure, AuditResult, AuditTrial, Finding, FindingOutcome,
    IntervalPosition, MeasureUnit, SCHEMA, Threshold, ThresholdKind, ThresholdResult,
    VerdictScores,
};
pub use verdict_probes::AuditVerdicts;

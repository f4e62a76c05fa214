//! Can this judge be trusted: its habits, found in its verdicts and by judging changed cases.
//!
//! | question | where |
//! |---|---|
//! | what is asked, and how a pair is changed for it | [`Probe`], [`Perturbation`] |
//! | habits that verdicts show | [`AuditVerdicts`] (`position`, `verbosity`, `mirror`) |
//! | what will be judged again | [`AuditPlan`] (`rewrite`, `error_swap`, [`ImagePerturbation`]) |
//! | judging it | [`judge_all`] |
//! | what it says | `changed`, `looking`, in [`Finding`]s with [`AuditEstimate`]s |
//! | whether that is good enough | [`Threshold`] |
//!
//! A finding is never more sure than its interval: what so few cases could not have shown is `unclear`,
//! and what could not be run is said and has not passed.

mod audit_cases;
mod audit_estimate;
mod audit_verdicts;
mod image_perturbation;
mod image_probes;
mod medical_errors;
mod plan;
mod position;
mod probe;
mod rejudge;
mod response_perturbation;
mod response_probes;
mod result;
mod symmetry;
mod tables;
mod threshold;
mod trial;
mod trial_set;
mod verbosity;
mod word_sequence;

pub use crate::analysis::audit::audit_cases::{AuditCases, AuditRequest};
pub use crate::analysis::audit::audit_estimate::{AuditEstimate, IntervalPosition};
pub use crate::analysis::audit::audit_verdicts::AuditVerdicts;
pub use crate::analysis::audit::image_perturbation::ImagePerturbation;
pub use crate::analysis::audit::rejudge::{PassResult, PassVerdict, ProgressFn, judge_all};
pub use crate::analysis::audit::threshold::{Threshold, ThresholdKind, ThresholdResult};
pub use plan::{AuditPair, AuditPass, AuditPlan};
pub use probe::{Perturbation, Probe};
pub use result::{AuditMeasure, AuditResult, Finding, FindingOutcome, MeasureUnit, SCHEMA};
pub use trial::{AuditTrial, VerdictScores};

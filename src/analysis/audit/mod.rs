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

mod again;
mod changed;
mod error_swap;
mod evidence;
mod limit;
mod looking;
mod mirror;
mod paired;
mod picture;
mod plan;
mod position;
mod probe;
mod reading;
mod result;
mod rewrite;
mod subject;
mod text;
mod trial;
mod verbosity;
mod wording;

pub use again::{PassResult, PassVerdict, ProgressFn, judge_all};
pub use evidence::AuditVerdicts;
pub use limit::{Threshold, ThresholdKind, ThresholdResult};
pub use picture::ImagePerturbation;
pub use plan::{AuditPair, AuditPass, AuditPlan};
pub use probe::{Perturbation, Probe};
pub use reading::{AuditEstimate, IntervalPosition};
pub use result::{AuditMeasure, AuditResult, Finding, FindingOutcome, MeasureUnit, SCHEMA};
pub use subject::{AuditCases, AuditRequest};
pub use trial::{AuditTrial, VerdictScores};

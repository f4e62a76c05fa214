//! Judging perturbed pairs: the plan of all passes, and running them.

mod audit_pair;
mod other_cases;
mod plan;
mod run_passes;

pub use audit_pair::AuditPair;
pub use other_cases::OtherCases;
pub use plan::{AuditPass, AuditPlan};
pub use run_passes::{PassResult, PassSettings, PassVerdict, ProgressFn, run_passes};

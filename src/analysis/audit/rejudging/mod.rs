//! Judging perturbed pairs: the plan of all passes, and running them.

mod plan;
mod run_passes;

pub use plan::{AuditPair, AuditPass, AuditPlan};
pub use run_passes::{PassResult, PassSettings, PassVerdict, ProgressFn, run_passes};

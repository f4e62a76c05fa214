//! Probes that need existing verdicts only.

mod audit_verdicts;
mod length_control;
mod position;
mod run_probe;
mod self_consistency;
mod symmetry;
mod verbosity;

pub use audit_verdicts::AuditVerdicts;
pub(crate) use audit_verdicts::label_orders;

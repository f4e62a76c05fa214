//! Analysis of verdicts: agreement with labels, audits, ranking, calibration, text metrics and the
//! report.

pub mod agreement;
pub mod audit;
pub mod calibration;
pub mod correctness;
pub mod metrics;
pub mod ranking;
pub mod report;
pub mod verdicts;

//! Commands that analyse verdicts and answers.

pub(super) mod agree;
mod agree_bounds;
mod agree_correctness;
pub(super) mod audit;
pub(super) mod calibrate;
mod calibrate_correctness;
mod graded_input;
pub(super) mod metrics;
pub(super) mod rank;
pub(super) mod report;
mod report_correctness;
mod report_output;
mod run_notices;
mod verdict_input;

//! Commands that analyse verdicts and answers.

pub(super) mod agree;
pub(super) mod audit;
pub(super) mod calibrate;
pub(super) mod metrics;
pub(super) mod rank;
pub(super) mod report;
mod run_notices;
mod verdict_input;

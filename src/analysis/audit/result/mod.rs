//! Results of an audit and their JSON form: estimates, measures, findings, thresholds and trials.

mod audit_result;
mod estimate;
mod finding;
mod measure;
pub(crate) mod measure_names;
mod threshold;
mod threshold_result;
mod trial;
mod unit;

pub use audit_result::{AuditResult, SCHEMA};
pub use estimate::{AuditEstimate, IntervalPosition};
pub use finding::{Finding, FindingOutcome};
pub use measure::AuditMeasure;
pub use threshold::{Threshold, ThresholdKind};
pub use threshold_result::ThresholdResult;
pub use trial::{AuditTrial, VerdictScores};
pub use unit::MeasureUnit;

pub(crate) use estimate::ClusteredValues;
pub(crate) use measure::MeasureName;
pub(crate) use measure_names as names;
pub(crate) use trial::scores_differ;

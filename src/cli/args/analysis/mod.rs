//! Arguments of the commands that analyse verdicts and answers.

mod agree;
mod audit;
mod calibrate;
mod metrics;
mod probe_choice;
mod rank;
mod report;

pub use agree::AgreeArgs;
pub use audit::{AuditArgs, ThresholdArgs};
pub use calibrate::{CalibrateApplyArgs, CalibrateArgs, CalibrateCommand, CalibrateFitArgs};
pub use metrics::{MetricModelArgs, MetricsArgs};
pub use probe_choice::ProbeChoice;
pub use rank::RankArgs;
pub use report::{ReportArgs, ReportFormat};

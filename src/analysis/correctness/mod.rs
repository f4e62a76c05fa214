//! Verdicts of the form `correctness`: the accuracy of each model, differences between models, and
//! agreement with people.

mod accuracy;
mod accuracy_tables;
mod calibration;
mod difference;
mod grade_bound;
mod graded_run;
mod label_agreement;
mod label_tables;
mod labelled;
mod model_accuracy;
mod reliability;
mod subgroup_accuracy;
#[cfg(test)]
mod test_run;

pub use accuracy::AccuracyReport;
pub(crate) use accuracy_tables::format_proportion;
pub use calibration::{ProbabilityCalibration, ProbabilityFit};
pub use difference::AccuracyDifference;
pub use grade_bound::{GradeStatistic, GradeStatisticValue};
pub use graded_run::{GradedResponse, GradedRun};
pub use label_agreement::{CorrectnessAgreement, GraderAgreement};
pub use labelled::{LabelledResponse, LabelledResponses};
pub use model_accuracy::ModelAccuracy;
pub use reliability::ProbabilityReliability;
pub use subgroup_accuracy::{SubgroupAccuracy, SubgroupModelAccuracy, subgroup_accuracies};

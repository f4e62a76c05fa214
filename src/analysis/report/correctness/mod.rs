//! Report of verdicts on the correctness of single responses.

mod changes;
mod entries;
mod graded_judge;
mod report;
mod review;
mod sections;
mod summary;
mod table;

pub use changes::{GradeChange, GradeChangeKind, GradeChanges};
pub use entries::graded_browser;
pub use graded_judge::{GradedJudge, GradedJudgeInput, ProbabilityHistogram};
pub use report::GradedReport;
pub use sections::build_graded_sections;
pub use table::graded_table;

//! Sections on the runs: their problems, and the statistical methods.

use super::super::section::ReportSection;
use crate::judging::run::manifest::Manifest;
use crate::judging::run::run_state::RunState;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::format_thousands;

/// A judge of a report and the run with its records.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis::report) struct JudgeSource<'a> {
    /// Name of the judge in the report.
    pub(in crate::analysis::report) name: &'a str,
    /// Hash of the judge.
    pub(in crate::analysis::report) judge: &'a str,
    /// Path of the records.
    pub(in crate::analysis::report) records: &'a str,
    /// State of the run.
    pub(in crate::analysis::report) run: &'a RunState,
}

/// What the description of the method says about a report.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis::report) struct MethodText {
    /// Number of bootstrap resamples.
    pub(in crate::analysis::report) resamples: usize,
    /// Seed of the bootstrap.
    pub(in crate::analysis::report) seed: u64,
    /// What one verdict is about, in the singular.
    pub(in crate::analysis::report) unit: &'static str,
    /// What the verdicts do: the rest of the sentence "Its verdicts ...".
    pub(in crate::analysis::report) subject: &'static str,
}

/// Says which runs are unfinished or damaged, and which judges are known to judge such cases badly;
/// `None` if there are none.
pub(in crate::analysis::report) fn run_problems_section(
    judges: &[JudgeSource<'_>],
) -> Option<ReportSection> {
    let mut section = ReportSection::new("runs", "Before you read the results");
    let notices = judges.iter().flat_map(|judge| judge.run.notices());
    notices.for_each(|notice| section.paragraph(notice));
    (!section.blocks.is_empty()).then_some(section)
}

/// Lists the judges and describes the statistical methods.
pub(in crate::analysis::report) fn method_section(
    judges: &[JudgeSource<'_>],
    text: &MethodText,
) -> ReportSection {
    let mut section = ReportSection::new("method", "Method");
    let mut table =
        Table::new(["judge", "hash of judge and settings", "records"]).with_text_columns(3);
    for judge in judges {
        table.push_row([judge.name, judge.judge, judge.records]);
    }
    section.tables([TableSection::new("judges", table)]);
    section.paragraph(format!(
        "Written by acem3 {}. Intervals are 95 % confidence intervals from {} bootstrap resamples, clustered by \
         image (seed {}). Values that cannot be computed are shown as undefined or unknown, never as zero. An \
         unscored {} is excluded from all means and lowers the coverage.",
        Manifest::VERSION,
        format_thousands(text.resamples),
        text.seed,
        text.unit
    ));
    section.paragraph(format!(
        "acem3 is not a medical device. Its verdicts {} and are not medical advice.",
        text.subject
    ));
    section
}

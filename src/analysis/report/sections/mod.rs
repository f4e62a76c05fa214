//! The sections of the report: text, tables and charts.

mod bias;
mod changes;
mod each_judge;
mod label_agreement;
mod models;
mod summary;

use super::section::ReportSection;
use crate::analysis::report::page::browser::CaseBrowser;
use crate::analysis::report::report_data::ReportData;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::format_thousands;

/// Returns all sections except the case browser.
pub fn build_sections(report: &ReportData, browser: &CaseBrowser) -> Vec<ReportSection> {
    let mut sections: Vec<ReportSection> = run_problems_section(report).into_iter().collect();
    sections.extend([summary::summary_section(report)]);
    let comparison = report.baseline.as_ref();
    sections.extend(comparison.map(|comparison| changes::changes_section(comparison, browser)));
    sections.extend([
        models::ranking_section(report),
        models::scores_section(report),
        models::distributions_section(report),
        label_agreement::agreement_section(report),
    ]);
    if report.has_several_judges() {
        sections.push(label_agreement::judges_section(report));
    }
    sections.extend([
        bias::bias_section(report),
        bias::subgroups_section(report),
        bias::disputed_section(report, browser),
        method_section(report),
    ]);
    sections
}

/// Says which runs are unfinished or damaged, and which judges are known to judge such cases badly;
/// `None` if there are none.
fn run_problems_section(report: &ReportData) -> Option<ReportSection> {
    let mut section = ReportSection::new("runs", "Before you read the results");
    let notices = report.judges.iter().flat_map(|judge| judge.run.notices());
    notices.for_each(|notice| section.paragraph(notice));
    (!section.blocks.is_empty()).then_some(section)
}

/// Lists the judges and describes the statistical methods.
fn method_section(report: &ReportData) -> ReportSection {
    let mut section = ReportSection::new("method", "Method");
    let mut table =
        Table::new(["judge", "hash of judge and settings", "records"]).with_text_columns(3);
    for judge in &report.judges {
        table.push_row([&judge.name, &judge.judge, &judge.records]);
    }
    section.tables([TableSection::new("judges", table)]);
    section.paragraph(format!(
        "Written by acem3 {}. Intervals are 95 % confidence intervals from {} bootstrap resamples, clustered by \
         image (seed {}). Values that cannot be computed are shown as undefined or unknown, never as zero. An \
         unscored pair is excluded from all means and lowers the coverage.",
        report.version,
        format_thousands(report.draws),
        report.seed
    ));
    section.paragraph(
        "acem3 is not a medical device. Its verdicts compare model responses and are not medical advice.",
    );
    section
}

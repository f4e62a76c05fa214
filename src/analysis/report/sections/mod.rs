//! The sections of the report: text, tables and charts.

mod bias;
mod changes;
pub(super) mod each_judge;
mod label_agreement;
pub(super) mod method;
mod models;
pub(super) mod run_changes;
pub(super) mod summary;

use method::{JudgeSource, MethodText, method_section, run_problems_section};

use super::section::ReportSection;
use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::page::browser::CaseBrowser;
use crate::analysis::report::report_data::ReportData;

/// Returns all sections except the case browser.
pub fn build_sections(report: &ReportData, browser: &CaseBrowser) -> Vec<ReportSection> {
    let sources = judge_sources(report);
    let method = MethodText {
        resamples: report.draws,
        seed: report.seed,
        unit: "pair",
        subject: "compare model responses",
    };
    let mut sections: Vec<ReportSection> = run_problems_section(&sources).into_iter().collect();
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
        method_section(&sources, &method),
    ]);
    sections
}

/// Returns the judges of a report of pairs.
fn judge_sources(report: &ReportData) -> Vec<JudgeSource<'_>> {
    fn source(judge: &JudgeReport) -> JudgeSource<'_> {
        JudgeSource {
            name: &judge.name,
            judge: &judge.judge,
            records: &judge.records,
            run: &judge.run,
        }
    }
    report.judges.iter().map(source).collect()
}

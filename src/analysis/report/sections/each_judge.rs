//! Sections that repeat for every judge.

use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::report_data::ReportData;
use crate::analysis::report::section::{ReportSection, SectionBlock};

/// Returns a section with the same content for every judge, under the judge's name if there are
/// several.
pub(super) fn section_per_judge(
    report: &ReportData,
    [id, title]: [&'static str; 2],
    add_content: impl Fn(&mut ReportSection, &JudgeReport),
) -> ReportSection {
    let mut section = ReportSection::new(id, title);
    for judge in &report.judges {
        if report.has_several_judges() {
            section.blocks.push(SectionBlock::Judge(judge.name.clone()));
        }
        add_content(&mut section, judge);
    }
    section
}

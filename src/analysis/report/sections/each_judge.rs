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
    let named = report.judges.iter().map(|judge| (judge.name.as_str(), judge));
    section_of_judges(named, [id, title], add_content)
}

/// Returns a section with the same content for every judge of a list of names and judges.
pub(in crate::analysis::report) fn section_of_judges<'a, J: 'a>(
    judges: impl ExactSizeIterator<Item = (&'a str, &'a J)>,
    [id, title]: [&'static str; 2],
    add_content: impl Fn(&mut ReportSection, &J),
) -> ReportSection {
    let mut section = ReportSection::new(id, title);
    let are_several = judges.len() > 1;
    for (name, judge) in judges {
        if are_several {
            section.blocks.push(SectionBlock::Judge(name.to_owned()));
        }
        add_content(&mut section, judge);
    }
    section
}

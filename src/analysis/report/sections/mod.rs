//! The report in words, tables and charts.

mod bias;
mod label_agreement;
mod models;
mod summary;

use super::browser::CaseBrowser;
use super::section::{ReportSection, SectionBlock};
use crate::analysis::agreement::TableSection;
use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::report_data::ReportData;
use crate::support::terminal::table::Table;

/// All sections but the browser of cases.
pub fn sections(report: &ReportData, browser: &CaseBrowser) -> Vec<ReportSection> {
    let mut all = vec![summary::summary(report)];
    all.extend([
        models::models(report),
        models::scores(report),
        models::distributions(report),
        crate::analysis::report::sections::label_agreement::agreement(report),
    ]);
    if report.several() {
        all.push(crate::analysis::report::sections::label_agreement::judges(
            report,
        ));
    }
    all.extend([
        crate::analysis::report::sections::bias::bias(report),
        crate::analysis::report::sections::bias::subgroups(report),
        crate::analysis::report::sections::bias::disputed(report, browser),
        method(report),
    ]);
    all
}

/// A section with the same kind of thing for every judge, each under its name where there are several.
fn each(
    report: &ReportData,
    [id, title]: [&'static str; 2],
    of: impl Fn(&mut ReportSection, &JudgeReport),
) -> ReportSection {
    let mut section = ReportSection::new(id, title);
    for judge in &report.judges {
        if report.several() {
            section.blocks.push(SectionBlock::Judge(judge.name.clone()));
        }
        of(&mut section, judge);
    }
    section
}

fn method(report: &ReportData) -> ReportSection {
    let mut section = ReportSection::new("method", "How this was made");
    let mut grid = Table::new(["judge", "hash", "records"]);
    for judge in &report.judges {
        grid.row([&judge.name, &judge.judge, &judge.records]);
    }
    section.tables([TableSection {
        title: "judges".to_owned(),
        grid,
        notes: Vec::new(),
    }]);
    section.say(format!(
        "Written by acem3 {} with {} draws of the bootstrap (seed {}), which draws whole images with all \
         their questions. Every interval is of 95 %. What cannot be computed is said to be undefined or \
         unknown and is never a zero; a pair without a verdict enters no mean and lowers the coverage.",
        report.version, report.draws, report.seed
    ));
    section.say(
        "acem3 is not a medical device: its verdicts compare answers of models and are no medical advice.",
    );
    section
}

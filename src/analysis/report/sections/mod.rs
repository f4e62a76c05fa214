//! The report in words, tables and charts.

mod labels;
mod leanings;
mod models;
mod summary;

use super::browser::CaseBrowser;
use super::figures::ReportData;
use super::judged::JudgeReport;
use super::section::{ReportSection, SectionBlock};
use crate::analysis::agreement::TableSection;
use crate::support::terminal::grid::Table;

/// All sections but the browser of cases.
pub fn sections(report: &ReportData, browser: &CaseBrowser) -> Vec<ReportSection> {
    let mut all = vec![summary::summary(report)];
    all.extend([
        models::models(report),
        models::scores(report),
        models::distributions(report),
        labels::agreement(report),
    ]);
    if report.several() {
        all.push(labels::judges(report));
    }
    all.extend([
        leanings::bias(report),
        leanings::subgroups(report),
        leanings::disputed(report, browser),
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

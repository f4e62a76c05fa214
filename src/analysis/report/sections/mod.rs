//! The sections of the report: text, tables and charts.

mod bias;
mod each_judge;
mod label_agreement;
mod models;
mod summary;

use super::browser::CaseBrowser;
use super::section::ReportSection;
use crate::analysis::report::report_data::ReportData;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::group_thousands;

/// Returns all sections except the case browser.
pub fn sections(report: &ReportData, browser: &CaseBrowser) -> Vec<ReportSection> {
    let mut all = vec![summary::summary(report)];
    all.extend([
        models::models(report),
        models::scores(report),
        models::distributions(report),
        label_agreement::agreement(report),
    ]);
    if report.several() {
        all.push(label_agreement::judges(report));
    }
    all.extend([
        bias::bias(report),
        bias::subgroups(report),
        bias::disputed(report, browser),
        method(report),
    ]);
    all
}

fn method(report: &ReportData) -> ReportSection {
    let mut section = ReportSection::new("method", "Method");
    let mut table = Table::new(["judge", "hash", "records"]).with_text_columns(3);
    for judge in &report.judges {
        table.row([&judge.name, &judge.judge, &judge.records]);
    }
    section.tables([TableSection::new("judges", table)]);
    section.say(format!(
        "Written by acem3 {}. Intervals are 95 % confidence intervals from {} bootstrap resamples, clustered by \
         image (seed {}). Values that cannot be computed are shown as undefined or unknown, never as zero. An \
         unscored pair is excluded from all means and lowers the coverage.",
        report.version,
        group_thousands(report.draws),
        report.seed
    ));
    section.say(
        "acem3 is not a medical device. Its verdicts compare model responses and are not medical advice.",
    );
    section
}

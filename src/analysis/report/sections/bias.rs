//! Sections on bias, subgroups, and pairs with flips, disagreements or no verdict.

use super::super::browser::CaseBrowser;
use super::super::scores::MeanScore;
use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::each;
use crate::analysis::audit::Finding;
use crate::analysis::report::case_lists;
use crate::analysis::report::report_data::ReportData;
use crate::analysis::report::sections::label_agreement::overall_tables;
use crate::support::tables::{Table, TableSection};

pub(super) fn bias(report: &ReportData) -> ReportSection {
    let mut section = each(report, ["bias", "Bias"], |section, judge| {
        let found = judge.leanings.iter();
        let found = found.map(|f| (f.probe.key().to_owned(), f.describe()));
        section.blocks.push(SectionBlock::Findings(found.collect()));
        let measured = judge.leanings.iter().filter(|f| !f.measures.is_empty());
        section.tables(measured.map(Finding::table));
        section.say("Run `acem3 audit CASES` to measure image sensitivity and bias.");
    });
    if let Some(audit) = &report.audit {
        let foreign = if audit.foreign {
            " (a judge or configuration that is not in this report)"
        } else {
            ""
        };
        section.say(format!(
            "An audit of {}{foreign}, from {}:",
            audit.judge, audit.file
        ));
        let found = audit.findings.iter();
        let found = found.map(|f| (f.probe.key().to_owned(), f.describe()));
        section.blocks.push(SectionBlock::Findings(found.collect()));
    }
    section
}

pub(super) fn subgroups(report: &ReportData) -> ReportSection {
    each(report, ["subgroups", "Subgroups"], |section, judge| {
        for groups in judge.groups.chunk_by(|a, b| a.by == b.by) {
            let models: Vec<&str> = judge.models.iter().map(|m| m.model.as_str()).collect();
            let by = groups.first().map_or("", |group| group.by.as_str());
            let mut table = Table::new([by, "pairs"].into_iter().chain(models.iter().copied()));
            for group in groups {
                let mut row = vec![group.value.clone(), group.pairs.to_string()];
                row.extend(models.iter().map(|name| {
                    let model = group.models.iter().find(|m| m.model == **name);
                    let mean = model.and_then(|m| m.on(report.target));
                    mean.map_or("-".to_owned(), MeanScore::shown)
                }));
                table.row(row);
            }
            let title = format!(
                "mean scores by {by} (score target: {})",
                report.target.key()
            );
            section.tables([TableSection::new(title, table).with_notes(vec![
                "brackets: 95 % CI; undefined: too few images, or all scores are equal".to_owned(),
            ])]);
        }
        if let Some(found) = &judge.agreement {
            section.tables(found.tables().into_iter().skip(overall_tables(found)));
        }
        if matches!(section.blocks.last(), None | Some(SectionBlock::Judge(_))) {
            section.say("No subgroups: the cases have no field to group by.");
        }
    })
}

pub(super) fn disputed(report: &ReportData, browser: &CaseBrowser) -> ReportSection {
    let mut section = ReportSection::new("disputed", "Flips and disagreements");
    for (number, judge) in report.judges.iter().enumerate() {
        if report.several() {
            section.blocks.push(SectionBlock::Judge(judge.name.clone()));
        }
        let found = case_lists::of_judge(browser, number);
        if found.is_empty() {
            section.say("No flips, no unscored pairs, and no known disagreement with the labels.");
        }
        section.blocks.extend(found);
    }
    for second in 1..report.judges.len() {
        let name = |i: usize| report.judges.get(i).map_or("", |j| j.name.as_str());
        let names = format!("{} and {}", name(0), name(second));
        section
            .blocks
            .extend(case_lists::of_judges(browser, [0, second], &names));
    }
    section
}

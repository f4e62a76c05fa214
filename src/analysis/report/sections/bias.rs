//! Sections on bias, subgroups, and pairs with flips, disagreements or no verdict.

use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::section_per_judge;
use crate::analysis::audit::{Finding, Probe};
use crate::analysis::report::page::browser::CaseBrowser;
use crate::analysis::report::report_data::ReportData;
use crate::analysis::report::sections::label_agreement::count_overall_tables;
use crate::analysis::report::verdicts::case_lists;
use crate::analysis::report::verdicts::scores::{MISSING_INTERVAL_NOTE, MeanScore};
use crate::support::tables::{Table, TableSection};

/// Lists the findings of the bias probes and of an audit.
pub(super) fn bias_section(report: &ReportData) -> ReportSection {
    let mut section = section_per_judge(report, ["bias", "Bias"], |section, judge| {
        let findings = judge.bias_findings.iter();
        let findings = findings.map(|f| (f.probe.key().to_owned(), f.describe()));
        section.blocks.push(SectionBlock::Findings(findings.collect()));
        let measured = judge.bias_findings.iter().filter(|f| !f.measures.is_empty());
        section.tables(measured.map(Finding::table));
        section.paragraph(
            "Run `acem3 audit CASES` to also measure image sensitivity and the effects of \
             formatting, prompt injection and medical errors.",
        );
    });
    if let Some(audit) = &report.audit {
        section.paragraph(format!(
            "An audit of {}{}, from {}:",
            audit.judge,
            audit.foreign_note(),
            audit.file
        ));
        let findings = audit.findings.iter();
        let findings = findings.map(|f| (f.probe.key().to_owned(), f.describe()));
        section.blocks.push(SectionBlock::Findings(findings.collect()));
        let added_text = [Probe::Planted, Probe::Neutral];
        let tables = audit.findings.iter().filter(|f| added_text.contains(&f.probe));
        section.tables(tables.filter(|f| !f.measures.is_empty()).map(Finding::table));
    }
    section
}

/// Lists mean scores and agreement by subgroup.
pub(super) fn subgroups_section(report: &ReportData) -> ReportSection {
    section_per_judge(report, ["subgroups", "Subgroups"], |section, judge| {
        for groups in judge.groups.chunk_by(|a, b| a.by == b.by) {
            let models: Vec<&str> = judge.models.iter().map(|m| m.model.as_str()).collect();
            let by = groups.first().map_or("", |group| group.by.as_str());
            let mut table = Table::new([by, "pairs"].into_iter().chain(models.iter().copied()));
            for group in groups {
                let mut row = vec![group.value.clone(), group.pairs.to_string()];
                row.extend(models.iter().map(|name| {
                    let model = group.models.iter().find(|m| m.model == **name);
                    let mean = model.and_then(|m| m.mean_on(report.target));
                    mean.map_or("-".to_owned(), MeanScore::to_cell)
                }));
                table.push_row(row);
            }
            let title = format!("mean scores by {by} (score target: {})", report.target.key());
            section
                .tables([TableSection::new(title, table)
                    .with_notes(vec![MISSING_INTERVAL_NOTE.to_owned()])]);
        }
        if let Some(agreement) = &judge.agreement {
            let tables = agreement.tables().into_iter();
            section.tables(tables.skip(count_overall_tables(agreement)));
        }
        if matches!(section.blocks.last(), None | Some(SectionBlock::Judge(_))) {
            section.paragraph("No subgroups: the cases have no field to group by.");
        }
    })
}

/// Lists flips, disagreements and unscored pairs.
pub(super) fn disputed_section(report: &ReportData, browser: &CaseBrowser) -> ReportSection {
    let mut section = ReportSection::new("disputed", "Flips and disagreements");
    for (number, judge) in report.judges.iter().enumerate() {
        if report.has_several_judges() {
            section.blocks.push(SectionBlock::Judge(judge.name.clone()));
        }
        let lists = case_lists::judge_lists(browser, number);
        if lists.is_empty() {
            section.paragraph(if judge.counts.form.is_pair() {
                "No flips, no unscored pairs, and no known disagreement with the labels."
            } else {
                "All responses have a verdict. Flips and disagreements are listed for pairs only."
            });
        }
        section.blocks.extend(lists);
    }
    for second in 1..report.judges.len() {
        let name = |i: usize| report.judges.get(i).map_or("", |j| j.name.as_str());
        let names = format!("{} and {}", name(0), name(second));
        section.blocks.extend(case_lists::disagreement_list(browser, [0, second], &names));
    }
    section
}

//! Sections on the agreement of judges with labels and with each other.

use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::section_per_judge;
use crate::analysis::agreement::{Agreement, AgreementStatistic, JudgeComparison, Statistic};
use crate::analysis::report::report_data::ReportData;
use crate::support::tables::chart::{Axis, Chart, ChartMark};

/// Returns the number of leading tables that cover all cases; the remaining tables cover subgroups.
pub(super) fn count_overall_tables(agreement: &Agreement) -> usize {
    1 + usize::from(agreement.sections.len() > 1)
}

/// Shows the agreement of each judge with the labels.
pub(super) fn agreement_section(report: &ReportData) -> ReportSection {
    section_per_judge(report, ["agreement", "Agreement with labels"], |section, judge| {
        let Some(agreement) = &judge.agreement else {
            section.paragraph(
                    "No agreement with labels: the records have no labels. Pass a label file with --labels FILE; \
                     `acem3 agree --help` lists its formats.",
            );
            return;
        };
        section.paragraph(agreement.intro());
        if let Some(chart) = agreement_chart(agreement) {
            section.chart(chart);
        }
        let tables = agreement.tables().into_iter();
        section.tables(tables.take(count_overall_tables(agreement)));
    })
}

/// Draws the judge's agreement and, if cases have several raters, the human ceiling.
fn agreement_chart(agreement: &Agreement) -> Option<Chart> {
    let section = agreement.sections.first()?;
    let proportions =
        [Statistic::Accuracy, Statistic::AccuracyWithoutTies, Statistic::AccuracyPreferred];
    let mut marks = Vec::new();
    let judge_and_ceiling = |statistic: &AgreementStatistic| {
        let judge = ChartMark {
            label: statistic.statistic.title().to_owned(),
            value: statistic.estimate.value.ok(),
            interval: statistic.estimate.interval.ok(),
            is_second_series: false,
        };
        let raters = statistic.ceiling.as_ref().map(|c| ChartMark {
            label: format!("{}: human ceiling", statistic.statistic.title()),
            value: c.estimate.value.ok(),
            interval: c.estimate.interval.ok(),
            is_second_series: true,
        });
        std::iter::once(judge).chain(raters)
    };
    for statistic in proportions.iter().filter_map(|s| section.statistic(*s)) {
        marks.extend(judge_and_ceiling(statistic));
    }
    let chart = Chart::forest(
        &format!("Agreement with the labels (score target: {})", section.target.key()),
        "Dots: proportions of pairs; lines: 95 % CI; hollow dots: human ceiling (inter-rater agreement). The next \
         table has the values.",
        &Axis::percent(None),
        &marks,
    );
    (!marks.is_empty()).then_some(chart)
}

/// Compares the first judge with each other judge.
pub(super) fn judges_section(report: &ReportData) -> ReportSection {
    let mut section = ReportSection::new("judges", "Judges compared");
    let first = report.judges.first().map_or("", |judge| &judge.name);
    for (compared, second) in report.compared.iter().zip(report.judges.iter().skip(1)) {
        section.blocks.push(SectionBlock::Judge(format!("{first} vs {}", second.name)));
        match &compared.orders {
            Some(orders) => {
                section.paragraph(format!(
                    "Agreement of {first} with {} on the pairs that both judged. The second judge's preferences serve \
                     as labels.",
                    second.name
                ));
                section.tables(orders.tables().into_iter().take(1));
            }
            None => section.paragraph("No comparison: the judges have no pair in common."),
        }
        match &compared.against {
            Some(against) => section.tables([JudgeComparison::table(against)]),
            None => {
                section.paragraph(
                    "No comparison with the labels: no pair that both judged is labelled.",
                );
            }
        }
    }
    section
}

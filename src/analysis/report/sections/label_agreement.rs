//! Sections on the agreement of judges with labels and with each other.

use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::each;
use crate::analysis::agreement::{Agreement, AgreementStatistic, JudgeComparison, Statistic};
use crate::analysis::report::report_data::ReportData;
use crate::support::chart::{Axis, Chart, ChartMark};

/// Returns the number of leading tables that cover all cases; the remaining tables cover subgroups.
pub(super) fn overall_tables(agreement: &Agreement) -> usize {
    1 + usize::from(agreement.sections.len() > 1)
}

pub(super) fn agreement(report: &ReportData) -> ReportSection {
    each(
        report,
        ["agreement", "Agreement with labels"],
        |section, judge| {
            let Some(found) = &judge.agreement else {
                section.say(
                    "No agreement with labels: the records have no labels. Pass a label file with --labels FILE; \
                     `acem3 agree --help` lists its formats.",
            );
                return;
            };
            section.say(found.intro());
            if let Some(chart) = ceiling(found) {
                section.chart(chart);
            }
            section.tables(found.tables().into_iter().take(overall_tables(found)));
        },
    )
}

/// Draws the judge's agreement and, if cases have several raters, the human ceiling.
fn ceiling(found: &Agreement) -> Option<Chart> {
    let section = found.sections.first()?;
    let shares = [
        Statistic::Accuracy,
        Statistic::AccuracyWithoutTies,
        Statistic::AccuracyPreferred,
    ];
    let mut marks = Vec::new();
    let both = |figure: &AgreementStatistic| {
        let own = ChartMark {
            label: figure.statistic.title().to_owned(),
            value: figure.estimate.value.ok(),
            interval: figure.estimate.interval.ok(),
            second: false,
        };
        let raters = figure.ceiling.as_ref().map(|c| ChartMark {
            label: format!("{}: human ceiling", figure.statistic.title()),
            value: c.estimate.value.ok(),
            interval: c.estimate.interval.ok(),
            second: true,
        });
        std::iter::once(own).chain(raters)
    };
    for figure in shares.iter().filter_map(|s| section.statistic(*s)) {
        marks.extend(both(figure));
    }
    let chart = Chart::forest(
        &format!(
            "Agreement with the labels (score target: {})",
            section.target.key()
        ),
        "Dots: proportions of pairs; lines: 95 % CI; hollow dots: human ceiling (inter-rater agreement). The next \
         table has the values.",
        &Axis::percent(None),
        &marks,
    );
    (!marks.is_empty()).then_some(chart)
}

pub(super) fn judges(report: &ReportData) -> ReportSection {
    let mut section = ReportSection::new("judges", "Judges compared");
    let first = report.judges.first().map_or("", |judge| &judge.name);
    for (compared, second) in report.compared.iter().zip(report.judges.iter().skip(1)) {
        section
            .blocks
            .push(SectionBlock::Judge(format!("{first} vs {}", second.name)));
        match &compared.orders {
            Some(orders) => {
                section.say(format!(
                    "Agreement of {first} with {} on the pairs that both judged. The second judge's preferences serve \
                     as labels.",
                    second.name
                ));
                section.tables(orders.tables().into_iter().take(1));
            }
            None => section.say("No comparison: the judges have no pair in common."),
        }
        match &compared.against {
            Some(against) => section.tables([JudgeComparison::table(against)]),
            None => {
                section.say("No comparison with the labels: no pair that both judged is labelled.");
            }
        }
    }
    section
}

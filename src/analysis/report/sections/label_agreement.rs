//! How far labels share the verdicts, and judges each other's.

use super::super::section::{ReportSection, SectionBlock};
use super::each;
use crate::analysis::agreement::{Agreement, AgreementStatistic, JudgeComparison, Statistic};
use crate::analysis::report::report_data::ReportData;
use crate::support::chart::{Axis, Chart, ChartMark};

/// How many of an agreement's tables are about all cases; the others are about subgroups.
pub(super) fn whole(agreement: &Agreement) -> usize {
    1 + usize::from(agreement.sections.len() > 1)
}

pub(super) fn agreement(report: &ReportData) -> ReportSection {
    each(
        report,
        ["agreement", "Agreement with labels"],
        |section, judge| {
            let Some(found) = &judge.agreement else {
                section.say(
                "These records carry no labels, so that nothing is known of how far anybody shares the \
                 verdicts. A label file (--labels FILE) would tell; acem3 agree --help shows its forms.",
            );
                return;
            };
            section.say(found.lead());
            if let Some(chart) = ceiling(found) {
                section.chart(chart);
            }
            section.tables(found.parts().into_iter().take(whole(found)));
        },
    )
}

/// The judge's agreement and, where several rated the same, the raters'.
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
            label: format!("{}: raters among each other", figure.statistic.title()),
            value: c.estimate.value.ok(),
            interval: c.estimate.interval.ok(),
            second: true,
        });
        std::iter::once(own).chain(raters)
    };
    for figure in shares.iter().filter_map(|s| section.figure(*s)) {
        marks.extend(both(figure));
    }
    let chart = Chart::forest(
        &format!(
            "Pairs ordered as the labels do, on {}",
            section.target.key()
        ),
        "Dots are shares of pairs, lines their 95 % intervals; hollow dots are raters among each other, which \
         no judge need pass. The next table has the numbers.",
        &Axis::percent(None),
        &marks,
    );
    (!marks.is_empty()).then_some(chart)
}

pub(super) fn judges(report: &ReportData) -> ReportSection {
    let mut section = ReportSection::new("judges", "Judges compared");
    let first = report.judges.first().map_or("", |judge| &judge.name);
    for (compared, second) in report.compared.iter().zip(report.judges.iter().skip(1)) {
        section.blocks.push(SectionBlock::Judge(format!(
            "{first} beside {}",
            second.name
        )));
        match &compared.orders {
            Some(orders) => {
                section.say(format!(
                    "How {first} orders the pairs that both judged, {} being taken for the label:",
                    second.name
                ));
                section.tables(orders.parts().into_iter().take(1));
            }
            None => section.say("The two judged no pair in common."),
        }
        match &compared.against {
            Some(against) => section.tables([JudgeComparison::part(against)]),
            None => section.say(
                "Which agrees better with labels is unknown: no pair that both judged is labelled.",
            ),
        }
    }
    section
}

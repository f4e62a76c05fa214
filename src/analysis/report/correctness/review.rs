//! Section that lists responses to review.

use super::entries::describe_grade;
use super::report::GradedReport;
use crate::analysis::report::page::browser::{BrowserEntry, CaseBrowser};
use crate::analysis::report::section::{ReportSection, SectionBlock};
use crate::analysis::report::verdicts::case_lists::{list_entries, unscored_list};
use crate::analysis::report::verdicts::record_summary::OutcomeSummary;

/// Lists the responses on which the judge differs from the labels, from exact match or from another
/// judge, and those without a verdict.
pub(super) fn review_section(report: &GradedReport, browser: &CaseBrowser) -> ReportSection {
    let mut section = ReportSection::new("disputed", "Responses to review");
    for (number, judge) in report.judges.iter().enumerate() {
        if report.judges.len() > 1 {
            section.blocks.push(SectionBlock::Judge(judge.name.clone()));
        }
        let labels = list_entries(browser, "judge and labels differ", "judge, label", |entry| {
            let (probability, label) =
                (probability(entry, number)?, *entry.labels.as_ref()?.first()?);
            let label = label > 0.5;
            let named = if label { "correct" } else { "wrong" };
            ((probability > 0.5) != label)
                .then(|| format!("{}, label {named}", describe_grade(Some(probability))))
        });
        let exact = list_entries(browser, "judge and exact match differ", "judge", |entry| {
            let (probability, metrics) = (probability(entry, number)?, entry.metrics?);
            let is_exact = if metrics.exact { "an exact match" } else { "no exact match" };
            ((probability > 0.5) != metrics.exact)
                .then(|| format!("{}, {is_exact}", describe_grade(Some(probability))))
        });
        let lists = [labels, exact, unscored_list(browser, number)];
        let before = section.blocks.len();
        section.blocks.extend(lists.into_iter().flatten());
        if section.blocks.len() == before {
            section.paragraph(
                "All responses have a verdict, equal to exact match and to the known labels.",
            );
        }
    }
    for second in 1..report.judges.len() {
        let name = |i: usize| report.judges.get(i).map_or("", |judge| judge.name.as_str());
        let title = format!("disagreement between {} and {}", name(0), name(second));
        section.blocks.extend(list_entries(browser, &title, "first, second", |entry| {
            let (a, b) = (probability(entry, 0)?, probability(entry, second)?);
            ((a > 0.5) != (b > 0.5))
                .then(|| format!("{}, {}", describe_grade(Some(a)), describe_grade(Some(b))))
        }));
    }
    section
}

/// Returns the probability that a judge gives a response; `None` without a verdict.
fn probability(entry: &BrowserEntry, judge: usize) -> Option<f64> {
    match entry.verdicts.get(judge)?.as_ref()? {
        OutcomeSummary::Judged { expected, .. } => expected.first().copied(),
        OutcomeSummary::Unscored { .. } => None,
    }
}

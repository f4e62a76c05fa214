//! Summary of the report: one finding per topic.

use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::each;
use crate::analysis::agreement::{Agreement, Statistic};
use crate::analysis::audit::FindingOutcome;
use crate::analysis::ranking::Ranking;
use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::report_data::ReportData;
use crate::statistics::Estimate;
use crate::support::text::plural;

pub(super) fn summary(report: &ReportData) -> ReportSection {
    each(report, ["summary", "Summary"], |section, judge| {
        let counts = &judge.counts;
        section.say(format!(
            "{} of {} about {} judged by {}.",
            plural(counts.judged as u64, "pair"),
            plural(counts.cases as u64, "case"),
            plural(counts.images as u64, "image"),
            judge.name
        ));
        let mut findings = vec![("models".to_owned(), leader(judge.ranking.as_ref()))];
        findings.push(("labels".to_owned(), labels(judge.agreement.as_ref())));
        let leanings = judge.leanings.iter();
        for found in leanings.filter(|found| found.outcome != FindingOutcome::NotRun) {
            findings.push((found.probe.key().to_owned(), found.describe()));
        }
        findings.push(("unscored".to_owned(), unscored(judge)));
        section.blocks.push(SectionBlock::Findings(findings));
    })
}

/// Names the best model and the significant differences.
fn leader(ranking: Option<&Ranking>) -> String {
    let Some((ranking, first)) = ranking.and_then(|r| Some((r, r.models.first()?))) else {
        return "unknown: no pair has a verdict".to_owned();
    };
    let rate = match (first.win_rate, first.win_rate_interval) {
        (Some(rate), Some([low, high])) => format!(
            "win rate {:.1} %, 95 % CI {:.1} to {:.1} %",
            100.0 * rate,
            100.0 * low,
            100.0 * high
        ),
        _ => "win rate without an interval".to_owned(),
    };
    let better = ranking.duels.iter().filter(|duel| duel.is_significant());
    let better: Vec<&str> = better.map(|duel| duel.words.as_str()).collect();
    let certain = if ranking.duels.is_empty() {
        "the only model".to_owned()
    } else if ranking.duels.iter().all(|duel| duel.p.is_none()) {
        "too few images for a significance test".to_owned()
    } else if better.is_empty() {
        "no two models differ significantly".to_owned()
    } else if better.len() > 4 {
        format!(
            "{} of {} pairwise comparisons are significant",
            better.len(),
            ranking.duels.len()
        )
    } else {
        format!("significant: {}", better.join("; "))
    };
    format!("{} is first ({rate}); {certain}", first.model)
}

/// Formats the agreement with the labels and the human ceiling.
fn labels(agreement: Option<&Agreement>) -> String {
    let accuracy = agreement
        .and_then(|a| a.sections.first())
        .and_then(|section| section.statistic(Statistic::Accuracy));
    let Some(accuracy) = accuracy else {
        return "agreement with labels is unknown: there are no labels".to_owned();
    };
    let describe = |estimate: &Estimate| match (estimate.value, estimate.interval) {
        (Ok(value), Ok(ends)) => format!(
            "{}, 95 % CI {} %",
            accuracy.statistic.format_value(value),
            accuracy.statistic.format_interval(ends)
        ),
        (Ok(value), Err(_)) => format!("{}, no interval", accuracy.statistic.format_value(value)),
        (Err(reason), _) => format!("undefined: {reason}"),
    };
    let ceiling = accuracy.ceiling.as_ref().map_or(
        "no inter-rater agreement: no case has two raters".to_owned(),
        |c| format!("human ceiling {}", describe(&c.estimate)),
    );
    let bounds = accuracy.bounds().map_or(String::new(), |ends| {
        let ends = accuracy.statistic.format_interval(ends);
        format!("; bounds if all unscored pairs were wrong or right: {ends} %")
    });
    format!(
        "pairwise accuracy {} ({} have a verdict{bounds}); {ceiling}",
        describe(&accuracy.estimate),
        accuracy.coverage.describe("pairs")
    )
}

fn unscored(judge: &JudgeReport) -> String {
    let counts = &judge.counts;
    let all = counts.all_unscored();
    if all == 0 {
        return format!(
            "none: all {} have a verdict",
            plural(counts.records as u64, "record")
        );
    }
    let reasons = counts.unscored.iter();
    let reasons: Vec<String> = reasons.map(|(r, n)| format!("{} {n}", r.name())).collect();
    format!(
        "{all} of {} ({}); excluded from all means",
        counts.records,
        reasons.join(", ")
    )
}

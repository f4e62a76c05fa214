//! Summary of the report: one finding per topic.

use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::section_per_judge;
use crate::analysis::agreement::{Agreement, Statistic};
use crate::analysis::audit::FindingOutcome;
use crate::analysis::ranking::Ranking;
use crate::analysis::report::audit::ReportAudit;
use crate::analysis::report::report_data::ReportData;
use crate::analysis::report::verdicts::counts::RecordCounts;
use crate::statistics::Estimate;
use crate::support::text::format_count;

/// Summarises the results of each judge: one finding per topic.
pub(super) fn summary_section(report: &ReportData) -> ReportSection {
    let mut section = section_per_judge(report, ["summary", "Summary"], |section, judge| {
        let counts = &judge.counts;
        section.paragraph(format!(
            "{} of {} about {} judged by {}.",
            format_count(counts.judged as u64, counts.form.unit()),
            format_count(counts.cases as u64, "case"),
            format_count(counts.images as u64, "image"),
            judge.name
        ));
        let mut findings = vec![("models".to_owned(), describe_leader(judge.ranking.as_ref()))];
        findings.push(("labels".to_owned(), describe_agreement(judge.agreement.as_ref())));
        let bias_findings = judge.bias_findings.iter();
        for finding in bias_findings.filter(|finding| finding.outcome != FindingOutcome::NotRun) {
            findings.push((finding.probe.key().to_owned(), finding.describe()));
        }
        findings.push(("unscored".to_owned(), describe_unscored(&judge.counts)));
        section.blocks.push(SectionBlock::Findings(findings));
    });
    if let Some(audit) = &report.audit {
        section.paragraph(describe_audit(audit));
        let found = audit.findings.iter().filter(|f| f.outcome == FindingOutcome::Biased);
        let found = found.map(|finding| (finding.probe.key().to_owned(), finding.describe()));
        let found: Vec<_> = found.collect();
        if !found.is_empty() {
            section.blocks.push(SectionBlock::Findings(found));
        }
    }
    section
}

/// Counts the outcomes of an audit; the biased findings follow.
fn describe_audit(audit: &ReportAudit) -> String {
    use FindingOutcome::{Biased, NotRun, Sound, Unclear};
    let count = |outcome: FindingOutcome| {
        let n = audit.findings.iter().filter(|finding| finding.outcome == outcome).count();
        (n > 0).then(|| format!("{n} {}", outcome.label()))
    };
    let counts: Vec<String> =
        [Biased, Unclear, Sound, NotRun].into_iter().filter_map(count).collect();
    format!("Audit of {}{}: {}.", audit.judge, audit.foreign_note(), counts.join(", "))
}

/// Names the best model and the significant differences.
fn describe_leader(ranking: Option<&Ranking>) -> String {
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
    let significant = ranking.comparisons.iter().filter(|c| c.is_significant());
    let significant: Vec<&str> = significant.map(|c| c.summary.as_str()).collect();
    let certainty = if ranking.comparisons.is_empty() {
        "the only model".to_owned()
    } else if ranking.comparisons.iter().all(|comparison| comparison.p.is_none()) {
        "too few images for a significance test".to_owned()
    } else if significant.is_empty() {
        "no two models differ significantly".to_owned()
    } else if significant.len() > 4 {
        format!(
            "{} of {} pairwise comparisons are significant",
            significant.len(),
            ranking.comparisons.len()
        )
    } else {
        format!("significant: {}", significant.join("; "))
    };
    format!("{} is first ({rate}); {certainty}", first.model)
}

/// Formats the agreement with the labels and the human ceiling.
fn describe_agreement(agreement: Option<&Agreement>) -> String {
    let accuracy = agreement
        .and_then(|a| a.sections.first())
        .and_then(|section| section.statistic(Statistic::Accuracy));
    let Some(accuracy) = accuracy else {
        return "agreement with labels is unknown: there are no labels".to_owned();
    };
    let describe = |estimate: &Estimate| match (estimate.value, estimate.interval) {
        (Ok(value), Ok(interval)) => format!(
            "{}, 95 % CI {} %",
            accuracy.statistic.format_value(value),
            accuracy.statistic.format_interval(interval)
        ),
        (Ok(value), Err(_)) => format!("{}, no interval", accuracy.statistic.format_value(value)),
        (Err(reason), _) => format!("undefined: {reason}"),
    };
    let ceiling = accuracy
        .ceiling
        .as_ref()
        .map_or("no inter-rater agreement: no case has two raters".to_owned(), |c| {
            format!("human ceiling {}", describe(&c.estimate))
        });
    let bounds = accuracy.bounds().map_or(String::new(), |bounds| {
        let bounds = accuracy.statistic.format_interval(bounds);
        format!("; bounds if all unscored pairs were wrong or right: {bounds} %")
    });
    format!(
        "pairwise accuracy {} ({} have a verdict{bounds}); {ceiling}",
        describe(&accuracy.estimate),
        accuracy.coverage.describe("pairs")
    )
}

/// Counts the records without a verdict, by reason.
pub(in crate::analysis::report) fn describe_unscored(counts: &RecordCounts) -> String {
    let all = counts.count_unscored();
    if all == 0 {
        return format!(
            "none: all {} have a verdict",
            format_count(counts.records as u64, "record")
        );
    }
    let reasons = counts.unscored.iter();
    let reasons: Vec<String> = reasons.map(|(r, n)| format!("{} {n}", r.name())).collect();
    format!("{all} of {} ({}); excluded from all means", counts.records, reasons.join(", "))
}

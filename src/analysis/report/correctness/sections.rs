//! Sections of a report on correctness: text, tables and charts.

use super::changes::{GradeChange, GradeChanges};
use super::entries::describe_grade;
use super::graded_judge::GradedJudge;
use super::report::GradedReport;
use super::review::review_section;
use super::summary::summary_findings;
use crate::analysis::correctness::{ModelAccuracy, SubgroupAccuracy, format_proportion};
use crate::analysis::report::page::browser::CaseBrowser;
use crate::analysis::report::run_comparison::ChangeTitle as _;
use crate::analysis::report::section::{ReportSection, SectionBlock};
use crate::analysis::report::sections::each_judge::section_of_judges;
use crate::analysis::report::sections::method::{
    JudgeSource, MethodText, method_section, run_problems_section,
};
use crate::analysis::report::sections::run_changes::{ChangeList, overview_of_changes};
use crate::support::tables::chart::{Axis, Chart, ChartMark};
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::format_signed_two_decimals;
use crate::support::text::format_count;

/// Maximum number of responses in the list of changes; the case browser and the JSON output have all.
const MAX_LISTED: usize = 20;

/// Returns all sections except the case browser.
pub fn build_graded_sections(report: &GradedReport, browser: &CaseBrowser) -> Vec<ReportSection> {
    let sources: Vec<JudgeSource<'_>> = report.judges.iter().map(judge_source).collect();
    let method = MethodText {
        resamples: report.draws,
        seed: report.seed,
        unit: "response",
        subject: "compare responses of models with references",
    };
    let per_judge = |heading, add: fn(&mut ReportSection, &GradedJudge)| {
        let named = report.judges.iter().map(|judge| (judge.name.as_str(), judge));
        section_of_judges(named, heading, add)
    };
    let mut sections: Vec<ReportSection> = run_problems_section(&sources).into_iter().collect();
    sections.push(per_judge(["summary", "Summary"], |section, judge| {
        let counts = &judge.counts;
        section.paragraph(format!(
            "{} to {} about {} judged by {}.",
            format_count(counts.judged as u64, "response"),
            format_count(counts.cases as u64, "case"),
            format_count(counts.images as u64, "image"),
            judge.name
        ));
        section.blocks.push(SectionBlock::Findings(summary_findings(judge)));
    }));
    sections.extend(report.baseline.as_ref().map(|changes| changes_section(changes, browser)));
    sections.extend([
        per_judge(["models", "Accuracy"], add_accuracy),
        per_judge(["scores", "Probabilities"], add_probabilities),
        per_judge(["agreement", "Agreement with labels"], add_agreement),
        per_judge(["subgroups", "Subgroups"], add_subgroups),
        review_section(report, browser),
        method_section(&sources, &method),
    ]);
    sections
}

fn judge_source(judge: &GradedJudge) -> JudgeSource<'_> {
    JudgeSource { name: &judge.name, judge: &judge.judge, records: &judge.records, run: &judge.run }
}

/// Shows the accuracy of the models and the differences between them.
fn add_accuracy(section: &mut ReportSection, judge: &GradedJudge) {
    section.paragraph(judge.accuracy.intro());
    let mark = |model: &ModelAccuracy| ChartMark {
        label: model.model.clone(),
        value: model.accuracy.value.ok(),
        interval: model.accuracy.interval.ok(),
        is_second_series: false,
    };
    let marks: Vec<ChartMark> = judge.accuracy.models.iter().map(mark).collect();
    section.chart(Chart::forest(
        "Accuracy, best model first",
        "Dots: proportions of responses that the judge takes for correct; lines: 95 % CI. The next table has the \
         values.",
        &Axis::percent(None),
        &marks,
    ));
    section.tables(judge.accuracy.tables());
}

/// Shows how the probabilities are distributed.
fn add_probabilities(section: &mut ReportSection, judge: &GradedJudge) {
    let bins = judge.histograms.first().map_or(0, |histogram| histogram.counts.len());
    let middle = |bin: usize| (bin as f64 + 0.5) / bins as f64;
    let axis = Axis {
        ends: [middle(0), middle(bins.saturating_sub(1))],
        ticks: (0..bins).map(|bin| (middle(bin), format!("{:.2}", middle(bin)))).collect(),
        reference_line: Some(0.5),
    };
    let bars = judge.histograms.iter().map(|histogram| {
        Chart::bars(
            &histogram.model,
            "Bars: number of responses by the probability that they are correct, in bins of 0.1, labelled with \
             their middle; dashed line: one half. The vertical scale differs between models. The next table has \
             the counts.",
            &axis,
            &histogram.counts,
        )
    });
    let title = "Distribution of the probabilities";
    section.blocks.push(SectionBlock::Charts(title.to_owned(), bars.collect()));
    let from = (0..bins).map(|bin| format!("{:.1}", bin as f64 / bins as f64));
    let mut table = Table::new(["probability from".to_owned()].into_iter().chain(from));
    for histogram in &judge.histograms {
        let counts = histogram.counts.iter().map(ToString::to_string);
        table.push_row([histogram.model.clone()].into_iter().chain(counts));
    }
    let note = "each column: responses with a probability from this value to 0.1 above it; above 0.5 a response \
                counts as correct";
    section.tables([
        TableSection::new("number of responses", table).with_notes(vec![note.to_owned()])
    ]);
}

/// Shows the agreement with labels and the reliability of the probabilities.
fn add_agreement(section: &mut ReportSection, judge: &GradedJudge) {
    let Some(agreement) = &judge.agreement else {
        section.paragraph(
            "Agreement with labels is unknown: there are no labels. A file with the columns case, model and score, \
             1 for correct and 0 for wrong, adds it: --labels FILE.",
        );
        return;
    };
    section.paragraph(agreement.intro());
    section.tables(agreement.tables());
    let reliability = judge.reliability.as_ref();
    section.tables(reliability.map(|r| r.table("reliability of the probabilities")));
}

/// Shows the accuracy by subgroup.
fn add_subgroups(section: &mut ReportSection, judge: &GradedJudge) {
    let mut models: Vec<&str> = judge.accuracy.models.iter().map(|m| m.model.as_str()).collect();
    models.sort_unstable();
    for groups in judge.groups.chunk_by(|a, b| a.by == b.by) {
        section.tables([subgroup_table(groups, &models)]);
    }
    if judge.groups.is_empty() {
        section.paragraph("No subgroups: the cases have no field to group by.");
    }
}

fn subgroup_table(groups: &[SubgroupAccuracy], models: &[&str]) -> TableSection {
    let by = groups.first().map_or("", |group| group.by.as_str());
    let mut table = Table::new([by, "responses"].into_iter().chain(models.iter().copied()));
    for group in groups {
        let mut row = vec![group.value.clone(), group.responses.to_string()];
        row.extend(models.iter().map(|name| {
            let model = group.models.iter().find(|model| model.model == **name);
            model.map_or("-".to_owned(), |model| format_proportion(&model.accuracy))
        }));
        table.push_row(row);
    }
    let note = "accuracy of each model; brackets: 95 % CI, clustered by image";
    TableSection::new(format!("accuracy by {by}"), table).with_notes(vec![note.to_owned()])
}

/// Shows what changed since an earlier run, response by response.
fn changes_section(changes: &GradeChanges, browser: &CaseBrowser) -> ReportSection {
    let mut section = overview_of_changes(changes, "response");
    let header = ["model", "accuracy before", "accuracy now", "difference in points", "responses"];
    let mut models = Table::new(header);
    for model in &changes.models {
        models.push_row([
            model.model.clone(),
            format!("{:.1} %", 100.0 * model.before),
            format!("{:.1} %", 100.0 * model.after),
            format_signed_two_decimals(100.0 * (model.after - model.before)),
            model.n.to_string(),
        ]);
    }
    let notes = vec!["over the responses with a verdict in both runs".to_owned()];
    section.tables([TableSection::new("accuracy", models).with_notes(notes)]);
    section.blocks.extend(changed_responses(changes, browser));
    section
}

/// Lists the changed responses, the most important changes first.
fn changed_responses(changes: &GradeChanges, browser: &CaseBrowser) -> Option<SectionBlock> {
    let entry_of = |change: &GradeChange| {
        browser.entries.iter().position(|entry| {
            entry.case.as_ref() == Some(&change.case) && entry.models == [change.model.as_str()]
        })
    };
    let mut sorted: Vec<&GradeChange> = changes.changes.iter().collect();
    sorted.sort_by_key(|change| change.kind);
    let row = |change: &&GradeChange| {
        let cells = [
            change.case.clone(),
            change.model.clone(),
            change.kind.title().to_owned(),
            describe_grade(change.before),
            describe_grade(change.after),
        ];
        Some((entry_of(change)?, cells))
    };
    let list = ChangeList {
        title: format!("changed verdicts: {}", format_count(sorted.len() as u64, "response")),
        header: ["case", "model", "change", "before", "now"],
        total: sorted.len(),
        max_listed: MAX_LISTED,
        rows: sorted.iter().take(MAX_LISTED).filter_map(row).collect(),
    };
    list.into_block()
}

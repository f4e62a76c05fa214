//! Sections on the models: ranking, mean scores and score distributions.

use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::section_per_judge;
use crate::analysis::calibration::means_table;
use crate::analysis::ranking::RankedModel;
use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::report_data::ReportData;
use crate::analysis::report::verdicts::deciding::DecidingCriteria;
use crate::analysis::report::verdicts::histogram::bins_of;
use crate::analysis::report::verdicts::scores::{MISSING_INTERVAL_NOTE, MeanScore, ModelScores};
use crate::data::labels::ScoreTarget;
use crate::support::tables::chart::{Axis, Chart, ChartMark};
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::format_signed_two_decimals;
use crate::support::text::format_count;

/// Shows the ranking of the models for each judge.
pub(super) fn ranking_section(report: &ReportData) -> ReportSection {
    section_per_judge(report, ["models", "Models"], |section, judge| {
        let Some(ranking) = &judge.ranking else {
            section.paragraph("No ranking: no pair has a verdict.");
            return;
        };
        section.paragraph(ranking.intro());
        let mark = |m: &RankedModel| ChartMark {
            label: m.model.clone(),
            value: m.win_rate,
            interval: m.win_rate_interval,
            is_second_series: false,
        };
        let marks: Vec<ChartMark> = ranking.models.iter().map(mark).collect();
        section.chart(Chart::forest(
            "Win rates, best model first",
            "Dots: win rates (a tie counts as half a win); lines: 95 % CI; dashed line: 50 %. The next table has the \
             values.",
            &Axis::percent(Some(0.5)),
            &marks,
        ));
        section.tables(ranking.tables());
    })
}

/// Shows the mean scores of the models for each judge.
pub(super) fn scores_section(report: &ReportData) -> ReportSection {
    section_per_judge(report, ["scores", "Scores"], |section, judge| {
        let mark = |m: &ModelScores| ChartMark {
            label: m.model.clone(),
            value: m.mean_on(report.target).and_then(|mean| mean.value),
            interval: m.mean_on(report.target).and_then(|mean| mean.interval),
            is_second_series: false,
        };
        let marks: Vec<ChartMark> = judge.models.iter().map(mark).collect();
        let [low, high] = judge.verdicts.score_range;
        section.chart(Chart::forest(
            &format!("Mean scores (score target: {})", report.target.key()),
            &format!(
                "Dots: mean scores ({low} to {high}); lines: 95 % CI. The next table has the values."
            ),
            &Axis::points([low, high]),
            &marks,
        ));
        section.tables([mean_score_table(judge)]);
        section.tables(deciding_table(&judge.deciding));
        if let Some(calibrated) = &judge.calibrated {
            section.tables([means_table(calibrated)]);
        }
    })
}

/// Returns the mean scores of all models, one row per target.
fn mean_score_table(judge: &JudgeReport) -> TableSection {
    let mut header = vec!["score target".to_owned()];
    header.extend(judge.models.iter().map(|m| m.model.clone()));
    let mut table = Table::new(header);
    for target in ScoreTarget::all() {
        let mut row = vec![target_name(target)];
        row.extend(judge.models.iter().map(|model| {
            let mean = model.mean_on(target);
            mean.map_or("no score".to_owned(), MeanScore::to_cell)
        }));
        table.push_row(row);
    }
    let mut row = vec!["pairs with a verdict".to_owned()];
    row.extend(judge.models.iter().map(|model| {
        let n = model.means.first().map_or(0, |mean| mean.n);
        format!("{n} of {}", model.pairs)
    }));
    table.push_row(row);
    let [low, high] = judge.verdicts.score_range;
    let range = format!(
        "scores from {low} to {high}, higher is better; a pair counts with the mean of its presentation orders"
    );
    let notes = [
        range.as_str(),
        "final score: given by the conclusion model, which reads the evaluations of the experts; it is not a mean of \
         other scores, so it can be far below all of them",
        "aspect: mean of its criteria, which are indented below it; criterion: given by the expert of its aspect",
        MISSING_INTERVAL_NOTE,
    ];
    let notes = notes.map(str::to_owned).to_vec();
    TableSection::new("mean scores", table).with_notes(notes)
}

/// Returns the table of the criteria that decided. `None` if no pair has a preferred response.
fn deciding_table(deciding: &DecidingCriteria) -> Option<TableSection> {
    if deciding.decided == 0 {
        return None;
    }
    let mut table = Table::new(["criterion", "decided", "alone", "mean lead"]);
    for row in &deciding.criteria {
        let percent = 100.0 * row.pairs / deciding.decided as f64;
        table.push_row([
            target_name(row.criterion).trim().to_owned(),
            format!("{percent:.1} %"),
            row.alone.to_string(),
            format_signed_two_decimals(row.mean_lead),
        ]);
    }
    let decided = format_count(deciding.decided as u64, "pair");
    let mut notes = vec![
        format!(
            "decided: proportion of the {decided} with a preferred response in which it leads most in this \
             criterion; a pair with several such criteria counts for each in equal parts"
        ),
        "alone: number of pairs without another such criterion; mean lead: score of the preferred response minus \
         that of the other, over these pairs"
            .to_owned(),
        "the conclusion model gives the final score itself: a lead goes together with a verdict and need not be \
         its cause"
            .to_owned(),
    ];
    if deciding.without_lead > 0 {
        let pairs = format_count(deciding.without_lead as u64, "pair");
        notes.push(format!("in {pairs} the preferred response leads in no criterion"));
    }
    Some(TableSection::new("criteria that decided", table).with_notes(notes))
}

/// Returns the name of a target; criteria are indented below their aspect.
fn target_name(target: ScoreTarget) -> String {
    match target {
        ScoreTarget::Final => "Final score".to_owned(),
        ScoreTarget::Aspect(aspect) => aspect.name(),
        ScoreTarget::Criterion(criterion) => format!("  {}", criterion.name()),
    }
}

/// Shows the score histograms of the models for each judge.
pub(super) fn distributions_section(report: &ReportData) -> ReportSection {
    section_per_judge(report, ["distributions", "Distributions"], |section, judge| {
        if judge.histograms.is_empty() {
            section.paragraph("No score distribution: no pair has a verdict.");
            return;
        }
        let title = format!("Score distribution (score target: {})", report.target.key());
        let range = judge.verdicts.score_range;
        let bars = judge.histograms.iter().map(|histogram| {
                Chart::bars(
                    &histogram.model,
                    "Bars: number of scores, rounded to half points; the vertical scale differs between models. The \
                     next table has the counts.",
                    &Axis::points(range),
                    histogram.counts_in(range),
                )
            });
        section.blocks.push(SectionBlock::Charts(title.clone(), bars.collect()));
        let halves = bins_of(range).map(|i| format!("{:.1}", i as f64 / 2.0));
        let mut table = Table::new(std::iter::once("scores".to_owned()).chain(halves));
        for histogram in &judge.histograms {
            let counts = histogram.counts_in(range).iter().map(ToString::to_string);
            table.push_row(std::iter::once(histogram.model.clone()).chain(counts));
        }
        let notes = vec!["scores rounded to half points".to_owned()];
        section.tables([TableSection::new(title, table).with_notes(notes)]);
    })
}

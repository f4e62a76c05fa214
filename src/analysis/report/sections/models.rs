//! Sections on the models: ranking, mean scores and score distributions.

use super::super::section::{ReportSection, SectionBlock};
use super::each_judge::section_per_judge;
use crate::analysis::calibration::means_table;
use crate::analysis::ranking::RankedModel;
use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::report_data::ReportData;
use crate::analysis::report::verdicts::histogram::BINS;
use crate::analysis::report::verdicts::scores::{MeanScore, ModelScores};
use crate::data::labels::ScoreTarget;
use crate::support::tables::chart::{Axis, Chart, ChartMark};
use crate::support::tables::{Table, TableSection};

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
        section.chart(Chart::forest(
            &format!("Mean scores (score target: {})", report.target.key()),
            "Dots: mean scores (0 to 5); lines: 95 % CI. The next table has the values.",
            &Axis::points(),
            &marks,
        ));
        section.tables([mean_score_table(judge)]);
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
            mean.map_or("undefined".to_owned(), MeanScore::to_cell)
        }));
        table.push_row(row);
    }
    let mut row = vec!["pairs with a verdict".to_owned()];
    row.extend(judge.models.iter().map(|model| {
        let n = model.means.first().map_or(0, |mean| mean.n);
        format!("{n} of {}", model.pairs)
    }));
    table.push_row(row);
    let mut notes = vec!["scores from 0 to 5, higher is better; brackets: 95 % CI".to_owned()];
    let reasons = judge.models.iter().flat_map(|m| &m.means);
    let mut reasons: Vec<&String> = reasons.filter_map(|m| m.undefined.as_ref()).collect();
    reasons.sort();
    reasons.dedup();
    notes.extend(reasons.into_iter().map(|reason| format!("undefined: {reason}")));
    TableSection::new("mean scores", table).with_notes(notes)
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
        let bars = judge.histograms.iter().map(|histogram| {
                Chart::bars(
                    &histogram.model,
                    "Bars: number of scores, rounded to half points; the vertical scale differs between models. The \
                     next table has the counts.",
                    &Axis::points(),
                    &histogram.counts,
                )
            });
        section.blocks.push(SectionBlock::Charts(title.clone(), bars.collect()));
        let halves = (0..BINS).map(|i| format!("{:.1}", i as f64 / 2.0));
        let mut table = Table::new(std::iter::once("scores".to_owned()).chain(halves));
        for histogram in &judge.histograms {
            let counts = histogram.counts.iter().map(ToString::to_string);
            table.push_row(std::iter::once(histogram.model.clone()).chain(counts));
        }
        let notes = vec!["scores rounded to half points".to_owned()];
        section.tables([TableSection::new(title, table).with_notes(notes)]);
    })
}

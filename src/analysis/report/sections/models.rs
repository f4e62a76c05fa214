//! The models: ranks, mean scores and how the scores are distributed.

use super::super::histogram::BINS;
use super::super::scores::{MeanScore, ModelScores};
use super::super::section::{ReportSection, SectionBlock};
use super::each;
use crate::analysis::agreement::TableSection;
use crate::analysis::calibration::of_means;
use crate::analysis::ranking::RankedModel;
use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::report_data::ReportData;
use crate::data::labels::ScoreTarget;
use crate::support::chart::{Axis, Chart, ChartMark};
use crate::support::terminal::table::Table;

pub(super) fn models(report: &ReportData) -> ReportSection {
    each(report, ["models", "Models"], |section, judge| {
        let Some(ranking) = &judge.ranking else {
            section.say("No pair has a verdict: there is nothing to rank.");
            return;
        };
        section.say(ranking.lead());
        let mark = |m: &RankedModel| ChartMark {
            label: m.model.clone(),
            value: m.win_rate,
            interval: m.win_rate_interval,
            second: false,
        };
        let marks: Vec<ChartMark> = ranking.models.iter().map(mark).collect();
        section.chart(Chart::forest(
            "Win rates, best model first",
            "Dots are the part of its pairs that a model won, a tie being half a win; lines are 95 % \
             intervals; the dashed line is at one half. The next table has the numbers.",
            &Axis::percent(Some(0.5)),
            &marks,
        ));
        section.tables(ranking.parts());
    })
}

pub(super) fn scores(report: &ReportData) -> ReportSection {
    each(report, ["scores", "Scores"], |section, judge| {
        let mark = |m: &ModelScores| ChartMark {
            label: m.model.clone(),
            value: m.on(report.target).and_then(|mean| mean.value),
            interval: m.on(report.target).and_then(|mean| mean.interval),
            second: false,
        };
        let marks: Vec<ChartMark> = judge.models.iter().map(mark).collect();
        section.chart(Chart::forest(
            &format!("Mean scores on {}", report.target.key()),
            "Dots are mean scores from 0 to 5, lines their 95 % intervals. The next table has the numbers.",
            &Axis::points(),
            &marks,
        ));
        section.tables([means(judge)]);
        if let Some(calibrated) = &judge.calibrated {
            section.tables([TableSection {
                title: "mean scores on the scale of people".to_owned(),
                grid: of_means(calibrated),
                notes: vec![
                    "low and high: a 95 % interval over images, in which is what is not known of the map"
                        .to_owned(),
                ],
            }]);
        }
    })
}

/// The means of all models on all targets, with a row for each target.
fn means(judge: &JudgeReport) -> TableSection {
    let mut head = vec!["mean of".to_owned()];
    head.extend(judge.models.iter().map(|m| m.model.clone()));
    let mut grid = Table::new(head);
    for target in ScoreTarget::all() {
        let mut row = vec![name(target)];
        row.extend(judge.models.iter().map(|model| {
            let mean = model.on(target);
            mean.map_or("undefined".to_owned(), MeanScore::shown)
        }));
        grid.row(row);
    }
    let mut row = vec!["pairs with a verdict".to_owned()];
    row.extend(judge.models.iter().map(|model| {
        let n = model.means.first().map_or(0, |mean| mean.n);
        format!("{n} of {}", model.pairs)
    }));
    grid.row(row);
    let mut notes = vec!["0 to 5, higher being better; in brackets 95 % intervals".to_owned()];
    let reasons = judge.models.iter().flat_map(|m| &m.means);
    let mut reasons: Vec<&String> = reasons.filter_map(|m| m.undefined.as_ref()).collect();
    reasons.sort();
    reasons.dedup();
    notes.extend(
        reasons
            .into_iter()
            .map(|reason| format!("undefined: {reason}")),
    );
    TableSection {
        title: "mean scores".to_owned(),
        grid,
        notes,
    }
}

/// A target as a person reads it; criteria stand under their aspect.
fn name(target: ScoreTarget) -> String {
    match target {
        ScoreTarget::Final => "Final score".to_owned(),
        ScoreTarget::Aspect(aspect) => aspect.name().to_owned(),
        ScoreTarget::Criterion(criterion) => format!("  {}", criterion.name()),
    }
}

pub(super) fn distributions(report: &ReportData) -> ReportSection {
    each(
        report,
        ["distributions", "Distributions"],
        |section, judge| {
            if judge.histograms.is_empty() {
                section.say("No pair has a verdict.");
                return;
            }
            let title = format!("How often each score was given, on {}", report.target.key());
            let bars = judge.histograms.iter().map(|histogram| {
                Chart::bars(
                    &histogram.model,
                    "Bars count the scores nearest to each half point; each model has its own scale. The next \
                     table has the numbers.",
                    &Axis::points(),
                    &histogram.counts,
                )
            });
            section
                .blocks
                .push(SectionBlock::Charts(title.clone(), bars.collect()));
            let halves = (0..BINS).map(|i| format!("{:.1}", i as f64 / 2.0));
            let mut grid = Table::new(std::iter::once("scores".to_owned()).chain(halves));
            for histogram in &judge.histograms {
                let counts = histogram.counts.iter().map(ToString::to_string);
                grid.row(std::iter::once(histogram.model.clone()).chain(counts));
            }
            section.tables([TableSection {
                title,
                grid,
                notes: vec!["to the nearest half point".to_owned()],
            }]);
        },
    )
}

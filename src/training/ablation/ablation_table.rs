//! Means over seeds with their intervals, as Markdown, JSON and a drawing.

use serde::Serialize;

use crate::statistics::mean_interval;
use crate::support::chart::{Axis, Chart, ChartMark, DOTS, label_with_value};
use crate::support::tables::{Table, TableSection, TableStyle, render};
use crate::support::terminal::number::{NOT_APPLICABLE, percent_with_interval};
use crate::training::TrainConfig;
use crate::training::ablation::ablation_config::AblationConfig;
use crate::training::ablation::ablation_result::AblationResult;
use crate::training::ablation::study::AblationStudy;

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct AblationTable {
    /// What its rows are.
    pub rows_are: AblationStudy,
    /// What was trained and measured, in words.
    pub budget: String,
    /// The rows; the others differ from the first in one thing.
    pub rows: Vec<AblationRow>,
}

/// A row: one variant over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AblationRow {
    /// What is particular about it.
    pub name: String,
    /// Its figures.
    pub cells: Vec<SeedStatistic>,
    /// Seconds of training, the mean of runs that were not interrupted.
    pub seconds: Option<f64>,
}

/// A figure over seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedStatistic {
    /// What it is a share of.
    pub name: String,
    /// The mean over seeds.
    pub mean: f64,
    /// Its 95 % interval by Student's t over seeds; absent for a single seed, and where seeds do not differ.
    pub interval: Option<[f64; 2]>,
    /// The figure of each seed.
    pub seeds: Vec<f64>,
}

impl AblationRow {
    /// The row of these trainings.
    pub fn new(name: &str, all: &[AblationResult]) -> Self {
        let names = all
            .first()
            .map_or(&[][..], |first| first.figures.as_slice());
        let cell = |(name, _): &(String, f64)| {
            let of =
                |m: &AblationResult| m.figures.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
            let seeds: Vec<f64> = all.iter().filter_map(of).collect();
            // Where nothing is trained, a seed moves nothing, and its interval would tell a certainty there is none of.
            let moved = seeds
                .windows(2)
                .any(|pair| pair[0].total_cmp(&pair[1]).is_ne());
            SeedStatistic {
                name: name.clone(),
                mean: seeds.iter().sum::<f64>() / seeds.len().max(1) as f64,
                interval: mean_interval(&seeds).ok().filter(|_| moved),
                seeds,
            }
        };
        let times: Vec<f64> = all.iter().filter_map(|m| m.seconds).collect();
        Self {
            name: name.to_owned(),
            cells: names.iter().map(cell).collect(),
            seconds: (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64),
        }
    }
}

impl AblationTable {
    /// A table with the words about it.
    pub fn new(
        rows_are: AblationStudy,
        base: &TrainConfig,
        budget: &AblationConfig,
        rows: Vec<AblationRow>,
    ) -> Self {
        let from = base.start.as_deref().unwrap_or("nothing");
        let seeds = budget.seeds;
        let intervals = if seeds == 1 {
            "1 seed, no intervals".to_owned()
        } else {
            format!(
                "{seeds} seeds; in brackets: 95 % CI over seeds (Student's t), which covers the variation between seeds, \
                 not between cases"
            )
        };
        Self {
            rows_are,
            budget: format!(
                "{} from {from}; {} phantom cases of seed {}; {intervals}",
                base.name, budget.plan.phantoms, budget.plan.seed
            ),
            rows,
        }
    }

    /// Returns the table below its budget.
    pub fn text(&self, style: TableStyle) -> String {
        let first = self.rows.first();
        let cells = first.map_or(&[][..], |row| row.cells.as_slice());
        let mut header = vec![""];
        header.extend(cells.iter().map(|cell| cell.name.as_str()));
        header.push("seconds");
        let mut table = Table::new(header);
        for row in &self.rows {
            let seconds = row.seconds.map(|seconds| format!("{seconds:.0}"));
            let mut cells = vec![row.name.clone()];
            cells.extend(row.cells.iter().map(SeedStatistic::text));
            cells.push(seconds.unwrap_or_else(|| NOT_APPLICABLE.to_owned()));
            table.row(cells);
        }
        render(&self.budget, &[TableSection::new("", table)], style)
    }

    /// The first figure of every row, drawn.
    pub fn svg(&self) -> String {
        let first = self.rows.first().and_then(|row| row.cells.first());
        let title = first.map_or("", |cell| cell.name.as_str());
        let mark = |row: &AblationRow| {
            let cell = row.cells.first();
            ChartMark {
                label: label_with_value(&row.name, cell.map(|cell| cell.mean)),
                value: cell.map(|cell| cell.mean),
                interval: cell.and_then(|cell| cell.interval),
                second: false,
            }
        };
        let marks: Vec<ChartMark> = self.rows.iter().map(mark).collect();
        let title = format!("{title} ({})", self.budget);
        Chart::forest(&title, DOTS, &Axis::zoomed(&marks), &marks).to_svg_file()
    }
}

impl SeedStatistic {
    fn text(&self) -> String {
        let interval = self
            .interval
            .map(|[low, high]| [low.max(0.0), high.min(1.0)]);
        percent_with_interval(self.mean, interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(seed: u64, right: f64, seconds: Option<f64>) -> AblationResult {
        AblationResult {
            seed,
            of: None,
            seconds,
            figures: vec![("phantoms: order right".to_owned(), right)],
        }
    }

    #[test]
    fn a_row_is_as_sure_as_its_seeds_agree() {
        let seeds = [0.90, 0.94, 0.92].map(|right| measured(1, right, Some(10.0)));
        let row = AblationRow::new("full", &seeds);
        // scipy.stats.t.interval(0.95, 2, 0.92, 0.02 / sqrt(3))
        let [low, high] = row.cells[0].interval.unwrap();
        assert!(
            (low - 0.870_317).abs() < 1e-5 && (high - 0.969_683).abs() < 1e-5,
            "{low} {high}"
        );
        assert_eq!(row.cells[0].text(), "92.0 % [87.0, 97.0]");
        let single = AblationRow::new("full", &seeds[..1]);
        assert_eq!(single.cells[0].text(), "90.0 %");
        let cut_off = AblationRow::new("full", &[measured(1, 0.5, None)]);
        assert_eq!(cut_off.seconds, None);
    }
}

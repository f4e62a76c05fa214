//! A calibration as tables to read.

use super::apply::CalibratedMean;
use super::file::{Calibration, CalibrationQuality};
use crate::analysis::agreement::TableSection;
use crate::judging::run::summary::percent_down;
use crate::support::terminal::number::{plain, signed};
use crate::support::terminal::table::Table;
use crate::support::text::plural;

/// With fewer labels an isotonic map follows the noise.
const WANTED: usize = 200;

impl Calibration {
    /// What was fitted, and how good it is.
    pub fn parts(&self) -> Vec<TableSection> {
        let mut grid = Table::new([
            "",
            "n",
            "images",
            "error before",
            "after",
            "bias before",
            "after",
            "calibration error",
            "after",
        ]);
        for (target, fitted) in &self.targets {
            let error = |q: &CalibrationQuality| shown(q.error, q.error_interval);
            let bias = |q: &CalibrationQuality| shown(q.bias, q.bias_interval);
            let (before, after) = (&fitted.before, &fitted.after);
            grid.row([
                target.key().to_owned(),
                fitted.n.to_string(),
                fitted.images.to_string(),
                error(before),
                error(after),
                bias(before),
                bias(after),
                format!("{:.2}", before.reliability.error),
                format!("{:.2}", after.reliability.error),
            ]);
        }
        let mut notes = vec![
            "error: mean absolute, in points; bias: mean of score less label; 95 % intervals over images"
                .to_owned(),
            "after: each response mapped by what was fitted without its image".to_owned(),
            "calibration error: how far the mean label of a half-point bin lies from its mean score"
                .to_owned(),
        ];
        for (target, reason) in &self.left_out {
            notes.push(format!("not fitted: {} ({reason})", target.key()));
        }
        if let Some(few) = self
            .targets
            .values()
            .map(|f| f.n)
            .min()
            .filter(|n| *n < WANTED)
        {
            notes.push(format!(
                "{} are few: some hundred settle a map, and a straight line needs fewer than a curve",
                plural(few as u64, "labelled response")
            ));
        }
        let title = format!("{} on the scale of {}", self.name, self.labels);
        let mut parts = vec![TableSection { title, grid, notes }];
        parts.extend(self.reliability());
        parts
    }

    /// The reliability of the first target's scores.
    fn reliability(&self) -> Option<TableSection> {
        let (target, fitted) = self.targets.first_key_value()?;
        let mut grid = Table::new(["scores", "n", "mean score", "mean label", "gap"]);
        for bin in &fitted.before.reliability.bins {
            grid.row([
                format!("{:.1} to {:.1}", bin.from, bin.to),
                bin.n.to_string(),
                plain(bin.score),
                plain(bin.truth),
                signed(bin.score - bin.truth),
            ]);
        }
        Some(TableSection {
            title: format!("reliability of the scores as they are, on {}", target.key()),
            grid,
            notes: Vec::new(),
        })
    }
}

fn shown(value: f64, interval: Option<[f64; 2]>) -> String {
    let ends = interval.map(|[low, high]| format!(" [{}, {}]", plain(low), plain(high)));
    plain(value) + &ends.unwrap_or_default()
}

/// The mean scores of models as a table.
pub(crate) fn of_means(means: &[CalibratedMean]) -> Table {
    let head = [
        "model",
        "of",
        "n",
        "coverage",
        "score",
        "calibrated",
        "low",
        "high",
    ];
    let mut grid = Table::new(head);
    for row in means {
        let end = |i: usize| row.interval.map_or("-".to_owned(), |ends| plain(ends[i]));
        grid.row([
            row.model.clone(),
            row.target.key().to_owned(),
            row.n.to_string(),
            format!("{:.0} %", percent_down(row.coverage)),
            plain(row.score),
            plain(row.calibrated),
            end(0),
            end(1),
        ]);
    }
    grid
}

//! A calibration as text tables.

use super::apply::CalibratedMean;
use super::curve::Method;
use super::file::{Calibration, CalibrationQuality};
use super::reliability_table::reliability_table;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::{
    format_floor_percent, format_two_decimals, format_with_interval,
};
use crate::support::text::format_count;

/// The number of labelled responses below which a note warns: an isotonic map then follows the
/// noise.
const RECOMMENDED_LABELS: usize = 200;

impl Calibration {
    /// Returns the tables: the quality of the maps, and the reliability of the first target.
    pub fn tables(&self) -> Vec<TableSection> {
        let mut tables = vec![self.quality_table()];
        tables.extend(self.reliability_table());
        tables
    }

    /// Returns the errors of each target, one row per target. The column names differ from those of
    /// the text table, because programs read them.
    pub(crate) fn csv_table(&self) -> Table {
        self.errors_by_target("bias")
    }

    /// Builds the table of each target's errors before and after calibration. `signed_error`: name
    /// of the columns with the mean signed error.
    fn errors_by_target(&self, signed_error: &str) -> Table {
        let mut table = Table::new([
            "",
            "n",
            "images",
            "error before",
            "error after",
            &format!("{signed_error} before"),
            &format!("{signed_error} after"),
            "ECE before",
            "ECE after",
        ]);
        for (target, fitted) in &self.targets {
            let error = |q: &CalibrationQuality| format_value(q.error, q.error_interval);
            let signed = |q: &CalibrationQuality| format_value(q.bias, q.bias_interval);
            let (before, after) = (&fitted.before, &fitted.after);
            table.push_row([
                target.key().to_owned(),
                fitted.n.to_string(),
                fitted.images.to_string(),
                error(before),
                error(after),
                signed(before),
                signed(after),
                format!("{:.2}", before.reliability.error),
                format!("{:.2}", after.reliability.error),
            ]);
        }
        table
    }

    /// Builds the table of the errors, with notes.
    fn quality_table(&self) -> TableSection {
        let mut notes = vec![
            "error: mean absolute error, in points; signed error: mean signed error (score − label); in brackets: 95 % CI, \
             clustered by image"
                .to_owned(),
            "after: cross-fitted (each response is mapped by a fit that excludes its image)".to_owned(),
            "ECE: expected calibration error, the mean gap between scores and labels in bins of half a point"
                .to_owned(),
        ];
        for (target, reason) in &self.left_out {
            notes.push(format!("not fitted: {} ({reason})", target.key()));
        }
        let fewest = self.targets.values().map(|fitted| fitted.n).min();
        if let Some(n) = fewest.filter(|n| *n < RECOMMENDED_LABELS) {
            let alternative = match self.method {
                Method::Isotonic => ", or a linear map, which needs fewer than an isotonic one",
                Method::Linear => "",
            };
            notes.push(format!(
                "{} are few: use at least {RECOMMENDED_LABELS}{alternative}",
                format_count(n as u64, "labelled response")
            ));
        }
        let title = format!("{} calibrated to {}", self.name, self.labels);
        TableSection::new(title, self.errors_by_target("signed error")).with_notes(notes)
    }

    /// Builds the reliability table of the first target's scores.
    fn reliability_table(&self) -> Option<TableSection> {
        let (target, fitted) = self.targets.first_key_value()?;
        let header = ["scores", "n", "mean score", "mean label", "gap"];
        let table = reliability_table(header, &fitted.before.reliability);
        let title = format!("reliability before calibration (score target: {})", target.key());
        Some(TableSection::new(title, table))
    }
}

/// Returns the calibrated mean scores of models as a table.
pub(crate) fn means_table(means: &[CalibratedMean]) -> TableSection {
    let mut table =
        Table::new(["model", "target", "n", "coverage", "score", "calibrated [95 % CI]"]);
    for mean in means {
        table.push_row([
            mean.model.clone(),
            mean.target.key().to_owned(),
            mean.n.to_string(),
            format_floor_percent(mean.coverage),
            format_two_decimals(mean.score),
            format_value(mean.calibrated, mean.interval),
        ]);
    }
    let title = "mean calibrated scores (label scale)";
    TableSection::new(title, table.with_text_columns(2)).with_notes(vec![
        "95 % CI: clustered by image; includes the uncertainty of the calibration map".to_owned(),
    ])
}

/// Returns the calibrated mean scores of models as a table with one value per cell.
pub(crate) fn means_csv_table(means: &[CalibratedMean]) -> Table {
    let mut table =
        Table::new(["model", "of", "n", "coverage", "score", "calibrated", "low", "high"]);
    for mean in means {
        let bound = |i: usize| {
            mean.interval.map_or("-".to_owned(), |bounds| format_two_decimals(bounds[i]))
        };
        table.push_row([
            mean.model.clone(),
            mean.target.key().to_owned(),
            mean.n.to_string(),
            format_floor_percent(mean.coverage),
            format_two_decimals(mean.score),
            format_two_decimals(mean.calibrated),
            bound(0),
            bound(1),
        ]);
    }
    table
}

fn format_value(value: f64, interval: Option<[f64; 2]>) -> String {
    let interval = interval.map(|bounds| bounds.map(format_two_decimals));
    format_with_interval(&format_two_decimals(value), interval)
}

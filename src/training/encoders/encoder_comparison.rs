//! A comparison as a table, and as JSON.

use serde::Serialize;

use crate::checkpoints::hub::HubStamp;
use crate::statistics::{Clusters, Difference, difference, holm};
use crate::support::chart::{Axis, Chart, ChartMark, DOTS, label_with_value};
use crate::support::tables::{Table, TableSection, TableStyle, render};
use crate::support::terminal::number::{format_p_value, with_interval};
use crate::training::measurement::{Proportion, share};

/// A value between 0 and 1 for each thing measured, with the image it is about.
pub(super) type MeasuredValues = Vec<(String, f64)>;

/// All encoders measured on one set.
#[derive(Clone, Debug, Serialize)]
pub struct EncoderComparison {
    /// What was done: `probe` or `judge`.
    pub measure: &'static str,
    /// The budget of each row, in words.
    pub budget: String,
    /// The set.
    pub set: String,
    /// One row for each encoder, in the order asked for.
    pub rows: Vec<EncoderRow>,
}

/// One encoder.
#[derive(Clone, Debug, Serialize)]
pub struct EncoderRow {
    /// Its name.
    pub encoder: String,
    /// Where on the hub it was taken from; absent where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubStamp>,
    /// Its figures, the overall one first.
    pub figures: Vec<NamedProportion>,
    /// Its overall figure against the first row's; absent in the first row.
    pub difference: Option<Difference>,
    /// Images encoded per second.
    pub images_per_second: f64,
    /// Numbers in its weights.
    pub parameters: u64,
    /// The most memory the program held while it was measured, in bytes, where the system tells.
    pub peak_memory: Option<u64>,
    /// The values of the overall figure, by which rows are compared.
    #[serde(skip)]
    pub(super) overall: MeasuredValues,
}

/// A named share.
#[derive(Clone, Debug, Serialize)]
pub struct NamedProportion {
    /// What is measured.
    pub name: String,
    /// Its mean and interval; absent where nothing could be measured.
    pub share: Option<Proportion>,
}

impl EncoderRow {
    /// A row of measured values, the overall ones first.
    pub(super) fn new(encoder: &str, values: Vec<(String, MeasuredValues)>) -> Self {
        let overall = values.first().map(|(_, v)| v.clone()).unwrap_or_default();
        let figures = values.into_iter().map(|(name, values)| NamedProportion {
            name,
            share: share(&values),
        });
        Self {
            encoder: encoder.to_owned(),
            hub: None,
            figures: figures.collect(),
            difference: None,
            images_per_second: 0.0,
            parameters: 0,
            peak_memory: None,
            overall,
        }
    }
}

impl EncoderComparison {
    /// The overall figure of every encoder, drawn.
    pub fn svg(&self) -> String {
        let figure = self.rows.first().and_then(|row| row.figures.first());
        let figure = figure.map_or("", |f| f.name.as_str());
        let mark = |row: &EncoderRow| {
            let share = row.figures.first().and_then(|f| f.share);
            ChartMark {
                label: label_with_value(&row.encoder, share.map(|s| s.value)),
                value: share.map(|s| s.value),
                interval: share.map(|s| s.interval),
                second: false,
            }
        };
        let marks: Vec<ChartMark> = self.rows.iter().map(mark).collect();
        let title = format!("{figure} ({}, 95 % intervals)", self.set);
        Chart::forest(&title, DOTS, &Axis::zoomed(&marks), &marks).to_svg_file()
    }

    /// Rows compared with the first. All rows hold the same things in the same order.
    pub(super) fn new(
        measure: &'static str,
        budget: String,
        set: &str,
        mut rows: Vec<EncoderRow>,
    ) -> Self {
        if let Some((first, others)) = rows.split_first_mut() {
            for row in others.iter_mut() {
                let both = row.overall.iter().zip(&first.overall);
                let pairs: Vec<(f64, f64)> = both.map(|((_, v), (_, base))| (*v, *base)).collect();
                let images = row.overall.iter().map(|(image, _)| image.as_str());
                row.difference = difference(&Clusters::new(images), &pairs).ok();
            }
            let compared = others.iter_mut().filter_map(|row| row.difference.as_mut());
            let mut all: Vec<&mut Difference> = compared.collect();
            let p: Vec<f64> = all.iter().map(|d| d.p).collect();
            for (difference, p) in all.iter_mut().zip(holm(&p)) {
                difference.p_holm = p;
            }
        }
        Self {
            measure,
            budget,
            set: set.to_owned(),
            rows,
        }
    }

    /// Returns one table per encoder.
    pub fn text(&self, style: TableStyle) -> String {
        let intro = format!(
            "{} on {}: {}\nin brackets: 95 % CI, clustered by image",
            self.measure, self.set, self.budget
        );
        let baseline = self.rows.first().map_or("", |row| row.encoder.as_str());
        let tables: Vec<TableSection> = self.rows.iter().map(|row| row.table(baseline)).collect();
        render(&intro, &tables, style)
    }
}

impl EncoderRow {
    fn table(&self, baseline: &str) -> TableSection {
        let mut table = Table::new(["statistic", "value", "n", "images"]);
        for figure in &self.figures {
            table.row(match figure.share {
                Some(proportion) => proportion.cells(&figure.name),
                None => [figure.name.as_str(), "not measured", "0", "0"].map(str::to_owned),
            });
        }
        let memory = self.peak_memory.map_or_else(String::new, |bytes| {
            format!(", peak memory {} MiB", bytes / (1 << 20))
        });
        let title = format!(
            "{} ({:.2} million parameters, {:.0} images/s{memory})",
            self.encoder,
            self.parameters as f64 / 1e6,
            self.images_per_second
        );
        let notes = self.difference.map(|difference| {
            let points = |value: f64| format!("{:+.1}", 100.0 * value);
            let interval = difference.interval.map(|ends| ends.map(points));
            let value = with_interval(&points(difference.value), interval);
            format!(
                "difference from {baseline}: {value} percentage points, p {}, p (Holm) {}",
                format_p_value(difference.p),
                format_p_value(difference.p_holm)
            )
        });
        TableSection::new(title, table).with_notes(notes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, right: usize) -> EncoderRow {
        let value = |i: usize| (i.to_string(), f64::from(u8::from(i < right)));
        EncoderRow::new(
            name,
            vec![("overall".to_owned(), (0..40).map(value).collect())],
        )
    }

    #[test]
    fn rows_are_compared_with_the_first() {
        let rows = vec![row("a", 20), row("b", 36), row("c", 20)];
        let found = EncoderComparison::new("probe", "a budget".to_owned(), "a set", rows);
        assert!(found.rows[0].difference.is_none());
        let [b, c] = [1, 2].map(|i| found.rows[i].difference.unwrap());
        assert!((b.value - 0.4).abs() < 1e-9 && b.p_holm < 0.01, "{b:?}");
        assert!(c.value.abs() < 1e-9 && c.p > 0.9, "{c:?}");
        assert!(b.p_holm >= b.p);
        let text = found.text(TableStyle::Terminal { width: 100 });
        for part in [
            "a set: a budget",
            "90.0 %",
            "difference from a",
            "+40.0 [",
            "p <0.001",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

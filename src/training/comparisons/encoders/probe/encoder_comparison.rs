//! Results of an encoder comparison, as text, JSON and SVG.

use serde::Serialize;

use crate::checkpoints::hub::HubSource;
use crate::statistics::{Clusters, MeanDifference, holm_adjust, paired_difference};
use crate::support::files::file_form::{FileForm, has_json_fields};
use crate::support::tables::chart::{Axis, Chart, ChartMark, DOTS_DESCRIPTION, label_with_value};
use crate::support::tables::{Table, TableSection, TableStyle, render_sections};
use crate::support::terminal::number::{format_p_value, format_with_interval};
use crate::training::measurement::{Proportion, proportion_with_interval};

/// Pairs of image name and value between 0 and 1, one per measured item.
pub(super) type MeasuredValues = Vec<(String, f64)>;

/// Results of all encoders on one test set.
#[derive(Clone, Debug, Serialize)]
pub struct EncoderComparison {
    /// Type of comparison: `probe` or `judge`.
    pub measure: &'static str,
    /// Description of the training budget of each encoder.
    pub budget: String,
    /// Name of the test set.
    pub set: String,
    /// One row per encoder, in the order of the arguments.
    pub rows: Vec<EncoderRow>,
}

/// Results of one encoder.
#[derive(Clone, Debug, Serialize)]
pub struct EncoderRow {
    /// Name of the encoder.
    pub encoder: String,
    /// Hub repository and commit; `None` if the encoder was not downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubSource>,
    /// Statistics of the encoder, the overall one first.
    #[serde(rename = "figures")]
    pub statistics: Vec<NamedProportion>,
    /// Difference of the overall statistic from the baseline's; `None` for the baseline.
    pub difference: Option<MeanDifference>,
    /// Images encoded per second.
    pub images_per_second: f64,
    /// Number of parameters.
    pub parameters: u64,
    /// Peak resident memory during the measurement in bytes; `None` if the system does not report
    /// it.
    pub peak_memory: Option<u64>,
    /// Values of the overall statistic, which are compared between rows.
    #[serde(skip)]
    pub(super) overall: MeasuredValues,
}

/// A named proportion.
#[derive(Clone, Debug, Serialize)]
pub struct NamedProportion {
    /// Name of the statistic.
    pub name: String,
    /// Mean and interval; `None` if there are no values.
    #[serde(rename = "share")]
    pub proportion: Option<Proportion>,
}

impl EncoderRow {
    /// Summarises measured values; the overall ones come first.
    pub(super) fn new(encoder: &str, values: Vec<(String, MeasuredValues)>) -> Self {
        let overall = values.first().map(|(_, v)| v.clone()).unwrap_or_default();
        let statistics = values.into_iter().map(|(name, values)| NamedProportion {
            name,
            proportion: proportion_with_interval(&values),
        });
        Self {
            encoder: encoder.to_owned(),
            hub: None,
            statistics: statistics.collect(),
            difference: None,
            images_per_second: 0.0,
            parameters: 0,
            peak_memory: None,
            overall,
        }
    }
}

impl EncoderComparison {
    /// The form of the JSON file.
    pub const JSON_FORM: FileForm = FileForm {
        name: "an encoder comparison of acem3",
        recognise: |file| has_json_fields(file, &["measure", "budget", "set", "rows"]),
    };

    /// Draws the overall statistic of every encoder as an SVG chart.
    pub fn svg(&self) -> String {
        let overall = self.rows.first().and_then(|row| row.statistics.first());
        let name = overall.map_or("", |statistic| statistic.name.as_str());
        let mark = |row: &EncoderRow| {
            let proportion = row.statistics.first().and_then(|s| s.proportion);
            ChartMark {
                label: label_with_value(&row.encoder, proportion.map(|p| p.value)),
                value: proportion.map(|p| p.value),
                interval: proportion.map(|p| p.interval),
                is_second_series: false,
            }
        };
        let marks: Vec<ChartMark> = self.rows.iter().map(mark).collect();
        let title = format!("{name} ({}, 95 % CI)", self.set);
        Chart::forest(&title, DOTS_DESCRIPTION, &Axis::zoomed(&marks), &marks).to_svg_file()
    }

    /// Compares the rows with the first. All rows have values of the same items in the same order.
    pub(super) fn new(
        measure: &'static str,
        budget: String,
        set: &str,
        mut rows: Vec<EncoderRow>,
    ) -> Self {
        if let Some((first, others)) = rows.split_first_mut() {
            for row in others.iter_mut() {
                let paired_values = row.overall.iter().zip(&first.overall);
                let pairs: Vec<(f64, f64)> =
                    paired_values.map(|((_, v), (_, base))| (*v, *base)).collect();
                let images = row.overall.iter().map(|(image, _)| image.as_str());
                row.difference = paired_difference(&Clusters::new(images), &pairs).ok();
            }
            let differences = others.iter_mut().filter_map(|row| row.difference.as_mut());
            let mut differences: Vec<&mut MeanDifference> = differences.collect();
            let p_values: Vec<f64> = differences.iter().map(|d| d.p).collect();
            for (difference, p) in differences.iter_mut().zip(holm_adjust(&p_values)) {
                difference.p_holm = p;
            }
        }
        Self { measure, budget, set: set.to_owned(), rows }
    }

    /// Returns one table per encoder.
    pub fn text(&self, style: TableStyle) -> String {
        let intro = format!(
            "{} on {}: {}\nin brackets: 95 % CI, clustered by image",
            self.measure, self.set, self.budget
        );
        let baseline = self.rows.first().map_or("", |row| row.encoder.as_str());
        let tables: Vec<TableSection> = self.rows.iter().map(|row| row.table(baseline)).collect();
        render_sections(&intro, &tables, style)
    }
}

impl EncoderComparison {
    /// Returns one row per statistic.
    pub fn csv_table(&self) -> Table {
        let header = ["encoder", "statistic", "value", "low", "high", "p", "p_holm", "n", "images"];
        let mut table = Table::new(header).with_text_columns(2);
        for row in &self.rows {
            for statistic in &row.statistics {
                let mut cells = vec![row.encoder.clone(), statistic.name.trim().to_owned()];
                match statistic.proportion {
                    Some(Proportion { value, interval: [low, high], n, images }) => {
                        cells.extend([value, low, high].map(|value| value.to_string()));
                        cells.extend([String::new(), String::new()]);
                        cells.extend([n, images].map(|count| count.to_string()));
                    }
                    None => cells.extend(["", "", "", "", "", "0", "0"].map(str::to_owned)),
                }
                table.push_row(cells);
            }
            if let Some(difference) = row.difference {
                let ends = difference.interval.map(|ends| ends.map(|end| end.to_string()));
                let [low, high] = ends.unwrap_or_default();
                let [value, p, p_holm] =
                    [difference.value, difference.p, difference.p_holm].map(|v| v.to_string());
                let name = "difference from the first encoder".to_owned();
                let n = row.overall.len().to_string();
                table.push_row([
                    row.encoder.clone(),
                    name,
                    value,
                    low,
                    high,
                    p,
                    p_holm,
                    n,
                    String::new(),
                ]);
            }
        }
        table
    }
}

impl EncoderRow {
    fn table(&self, baseline: &str) -> TableSection {
        let mut table = Table::new(["statistic", "value", "n", "images"]);
        for statistic in &self.statistics {
            table.push_row(match statistic.proportion {
                Some(proportion) => proportion.cells(&statistic.name),
                None => [statistic.name.as_str(), "not measured", "0", "0"].map(str::to_owned),
            });
        }
        let memory = self
            .peak_memory
            .map_or_else(String::new, |bytes| format!(", peak memory {} MiB", bytes / (1 << 20)));
        let title = format!(
            "{} ({:.2} million parameters, {:.0} images/s{memory})",
            self.encoder,
            self.parameters as f64 / 1e6,
            self.images_per_second
        );
        let notes = self.difference.map(|difference| {
            let points = |value: f64| format!("{:+.1}", 100.0 * value);
            let interval = difference.interval.map(|ends| ends.map(points));
            let value = format_with_interval(&points(difference.value), interval);
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

    fn row(name: &str, correct: usize) -> EncoderRow {
        let value = |i: usize| (i.to_string(), f64::from(u8::from(i < correct)));
        EncoderRow::new(name, vec![("overall".to_owned(), (0..40).map(value).collect())])
    }

    #[test]
    fn rows_are_compared_with_the_first() {
        let rows = vec![row("a", 20), row("b", 36), row("c", 20)];
        let comparison = EncoderComparison::new("probe", "a budget".to_owned(), "a set", rows);
        assert!(comparison.rows[0].difference.is_none());
        let [b, c] = [1, 2].map(|i| comparison.rows[i].difference.unwrap());
        assert!((b.value - 0.4).abs() < 1e-9 && b.p_holm < 0.01, "{b:?}");
        assert!(c.value.abs() < 1e-9 && c.p > 0.9, "{c:?}");
        assert!(b.p_holm >= b.p);
        let text = comparison.text(TableStyle::Terminal { width: 100 });
        for part in ["a set: a budget", "90.0 %", "difference from a", "+40.0 [", "p <0.001"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

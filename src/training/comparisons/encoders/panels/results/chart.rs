//! Chart of a comparison.

use super::comparison::JudgedComparison;
use crate::support::tables::chart::{Axis, Chart, ChartMark, label_with_value};
use crate::training::measurement::Proportion;

/// Description of the chart for screen readers.
const DESCRIPTION: &str = "One row per encoder with its order accuracy, one with a blank image, and one for the \
                           majority class. Dots are values, lines are 95 % confidence intervals; baselines are hollow.";

impl JudgedComparison {
    /// Draws the order accuracy of every encoder and of the baselines as an SVG chart.
    pub fn svg(&self) -> String {
        let mark = |name: &str, proportion: Option<Proportion>, is_baseline: bool| ChartMark {
            label: label_with_value(name, proportion.map(|p| p.value)),
            value: proportion.map(|p| p.value),
            interval: proportion.map(|p| p.interval),
            is_second_series: is_baseline,
        };
        let mut marks = Vec::new();
        for row in &self.rows {
            marks.push(mark(&row.encoder, row.order_accuracy(), false));
            marks.push(mark(&format!("{}, blank image", row.encoder), row.blank_image, true));
        }
        marks.push(mark("majority class", self.majority_class.order_accuracy, true));
        let title = format!("order accuracy ({}, 95 % CI)", self.set);
        Chart::forest(&title, DESCRIPTION, &Axis::zoomed(&marks), &marks).to_svg_file()
    }
}

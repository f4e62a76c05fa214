//! Accuracies as text tables and CSV.

use crate::analysis::correctness::accuracy::AccuracyReport;
use crate::analysis::correctness::model_accuracy::ModelAccuracy;
use crate::analysis::verdicts::caption::interval_caption;
use crate::statistics::Estimate;
use crate::support::tables::{Table, TableSection};
use crate::support::terminal::number::{
    NOT_APPLICABLE, format_floor_percent, format_p_value, format_percent_with_interval,
};
use crate::support::text::format_count;

/// Formats a proportion with its interval.
pub(crate) fn format_proportion(estimate: &Estimate) -> String {
    let formatted = |value| format_percent_with_interval(value, estimate.interval.ok());
    estimate.value.map_or_else(|_| NOT_APPLICABLE.to_owned(), formatted)
}

/// Formats a proportion without its interval.
fn format_short(estimate: &Estimate) -> String {
    let formatted = |value| format_percent_with_interval(value, None);
    estimate.value.map_or_else(|_| NOT_APPLICABLE.to_owned(), formatted)
}

impl AccuracyReport {
    /// Returns the paragraph above the tables.
    pub fn intro(&self) -> String {
        format!(
            "{} of {} with a verdict of {}; {}\n{}",
            self.n,
            format_count(self.responses as u64, "response"),
            self.judge,
            format_count(self.images as u64, "image"),
            interval_caption(self.resamples, self.seed)
        )
    }

    /// Returns the tables: the models, and the differences between them.
    pub fn tables(&self) -> Vec<TableSection> {
        let mut tables = vec![self.model_table()];
        if !self.differences.is_empty() {
            tables.push(self.difference_table());
        }
        tables
    }

    /// Returns the table of the models.
    pub fn model_table(&self) -> TableSection {
        let mut table = Table::new([
            "model",
            "accuracy [95 % CI]",
            "closed",
            "open",
            "exact match",
            "token recall",
            "n",
            "coverage",
        ]);
        for model in &self.models {
            table.push_row([
                model.model.clone(),
                format_proportion(&model.accuracy),
                format_short(&model.closed),
                format_short(&model.open),
                format_short(&model.exact_match),
                format_short(&model.token_recall),
                model.n.to_string(),
                format_floor_percent(model.coverage),
            ]);
        }
        let notes = [
            "accuracy: proportion of responses that the judge takes for correct, with a probability \
             above one half",
            "closed, open: accuracy on closed questions (yes or no, or a short list of answers) and on \
             the others",
            "exact match: the response equals the reference, without case, punctuation and articles",
            "token recall: mean proportion of the words of the reference that are in the response; \
             each character of a Chinese reference is a word",
            "exact match and token recall need no verdict: they count all responses to cases with a \
             reference, and an empty or missing one as wrong",
            "n: responses with a verdict; coverage: their proportion",
        ];
        TableSection::new("accuracy, best first", table)
            .with_notes(notes.map(str::to_owned).to_vec())
    }

    fn difference_table(&self) -> TableSection {
        let mut table =
            Table::new(["models", "difference [95 % CI]", "only first", "only second", "n", "p"]);
        for difference in &self.differences {
            let [first, second] = &difference.models;
            let interval = difference.difference.interval;
            table.push_row([
                format!("{first} - {second}"),
                format_percent_with_interval(difference.difference.value, interval),
                difference.only[0].to_string(),
                difference.only[1].to_string(),
                difference.n.to_string(),
                format_p_value(difference.difference.p_holm),
            ]);
        }
        let notes = [
            "difference: accuracy of the first model minus accuracy of the second, on the cases with a \
             verdict on both",
            "only first, only second: cases on which only this model is correct",
            "p: permutation test clustered by image, with Holm's correction over all pairs of models",
        ];
        TableSection::new("differences", table).with_notes(notes.map(str::to_owned).to_vec())
    }

    /// Returns one row per model, with one value per cell.
    pub fn csv_table(&self) -> Table {
        let columns: Vec<String> = COLUMNS
            .iter()
            .flat_map(|(name, _)| {
                ["", "_low", "_high", "_n"].map(|suffix| format!("{name}{suffix}"))
            })
            .collect();
        let names = ["model".to_owned()].into_iter().chain(columns);
        let mut table = Table::new(names.chain(["coverage".to_owned()]).collect::<Vec<_>>());
        let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        for model in &self.models {
            let mut row = vec![model.model.clone()];
            for (_, estimate) in COLUMNS {
                let estimate = estimate(model);
                let bounds = estimate.interval.ok();
                row.push(number(estimate.value.ok()));
                row.extend([0, 1].map(|i| number(bounds.map(|bounds| bounds[i]))));
                row.push(estimate.n.to_string());
            }
            row.push(model.coverage.to_string());
            table.push_row(row);
        }
        table
    }
}

/// An estimate of a model, by its column in CSV.
type EstimateColumn = (&'static str, fn(&ModelAccuracy) -> &Estimate);

/// The estimates of a model in CSV.
const COLUMNS: [EstimateColumn; 6] = [
    ("accuracy", |model| &model.accuracy),
    ("closed", |model| &model.closed),
    ("open", |model| &model.open),
    ("probability", |model| &model.probability),
    ("exact_match", |model| &model.exact_match),
    ("token_recall", |model| &model.token_recall),
];

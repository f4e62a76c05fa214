//! Values of a comparison as CSV.

use super::comparison::JudgedComparison;
use super::pair_values::{EncoderComparisonKind, PairedComparison};
use super::row::JudgedRow;
use crate::support::tables::Table;
use crate::training::comparisons::encoders::probe::NamedProportion;
use crate::training::measurement::Proportion;

/// Names of the columns.
const HEADER: [&str; 11] = [
    "encoder",
    "compared_with",
    "statistic",
    "group",
    "value",
    "low",
    "high",
    "p",
    "p_holm",
    "n",
    "images",
];

impl JudgedComparison {
    /// Returns one row per statistic.
    pub fn csv_table(&self) -> Table {
        let mut table = Table::new(HEADER).with_text_columns(4);
        for row in &self.rows {
            let encoder = row.encoder.as_str();
            for statistic in &row.statistics {
                let name = statistic.name.trim();
                push_proportion(&mut table, [encoder, name, ""], statistic.proportion);
            }
            push_proportion(
                &mut table,
                [encoder, "order accuracy, blank image", ""],
                row.blank_image,
            );
            push_groups(&mut table, encoder, [&row.by_question_type, &row.by_modality]);
            for seed in &row.by_seed {
                let seed_name = seed.seed.to_string();
                let key = [encoder, "order accuracy, seed", seed_name.as_str()];
                push_proportion(&mut table, key, seed.order_accuracy);
            }
            for (name, value) in cost_values(row) {
                let mut cells = [encoder, "", name, ""].map(str::to_owned).to_vec();
                cells.push(value);
                cells.resize(HEADER.len(), String::new());
                table.push_row(cells);
            }
        }
        let majority = &self.majority_class;
        let name = "majority class";
        push_proportion(&mut table, [name, "order accuracy", ""], majority.order_accuracy);
        push_groups(&mut table, name, [&majority.by_question_type, &majority.by_modality]);
        for comparison in &self.differences {
            push_difference(&mut table, comparison);
        }
        table
    }
}

/// Adds rows with the order accuracy of groups: question types and modalities.
fn push_groups(table: &mut Table, encoder: &str, groups: [&Vec<NamedProportion>; 2]) {
    let names = ["order accuracy by question type", "order accuracy by modality"];
    for (name, groups) in names.into_iter().zip(groups) {
        for group in groups {
            push_proportion(table, [encoder, name, &group.name], group.proportion);
        }
    }
}

/// Adds a row with a proportion. `key`: encoder, statistic and group.
fn push_proportion(table: &mut Table, key: [&str; 3], proportion: Option<Proportion>) {
    let [encoder, statistic, group] = key;
    let mut cells = [encoder, "", statistic, group].map(str::to_owned).to_vec();
    match proportion {
        Some(Proportion { value, interval: [low, high], n, images }) => {
            cells.extend([value, low, high].map(|value| value.to_string()));
            cells.extend([String::new(), String::new(), n.to_string(), images.to_string()]);
        }
        None => cells.extend(["", "", "", "", "", "0", "0"].map(str::to_owned)),
    }
    table.push_row(cells);
}

fn push_difference(table: &mut Table, comparison: &PairedComparison) {
    let PairedComparison { encoder, baseline, n, difference, kind } = comparison;
    let group = match kind {
        EncoderComparisonKind::Encoders => "encoders",
        EncoderComparisonKind::BlankImage => "blank image",
        EncoderComparisonKind::MajorityClass => "majority class",
    };
    let statistic = "difference of order accuracy".to_owned();
    let mut cells = vec![encoder.clone(), baseline.clone(), statistic, group.to_owned()];
    match difference {
        Some(difference) => {
            let ends = difference.interval.map(|ends| ends.map(|end| end.to_string()));
            let [low, high] = ends.unwrap_or_default();
            cells.extend([difference.value.to_string(), low, high]);
            cells.extend([difference.p, difference.p_holm].map(|p| p.to_string()));
        }
        None => cells.extend([""; 5].map(str::to_owned)),
    }
    cells.extend([n.to_string(), String::new()]);
    table.push_row(cells);
}

/// Returns the costs and the coverage of an encoder by name.
fn cost_values(row: &JudgedRow) -> Vec<(&'static str, String)> {
    let mut values = vec![
        ("pairs", row.pairs.to_string()),
        ("scored pairs", row.scored.to_string()),
        ("tokens per image", row.fit.image_tokens.to_string()),
    ];
    values.extend(row.seconds_per_pair.map(|seconds| ("seconds per pair", seconds.to_string())));
    if let Some(cost) = &row.cost {
        values.push(("milliseconds per image", cost.milliseconds_per_image.to_string()));
        values.extend(cost.peak_memory.map(|bytes| ("peak memory, bytes", bytes.to_string())));
        values.push(("parameters of the encoder", cost.encoder_parameters.to_string()));
        values.push(("parameters of the projector", cost.projector_parameters.to_string()));
        values.push(("trained parameters", cost.trained_parameters.to_string()));
        values.extend(cost.training_seconds.map(|s| ("seconds of training", s.to_string())));
    }
    values
}

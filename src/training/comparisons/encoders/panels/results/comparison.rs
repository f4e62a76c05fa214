//! Results of all encoders on one set of held-out pairs.

use serde::Serialize;

use super::encoder_input::EncoderInput;
use super::pair_values::{
    ComparedValues, EncoderComparisonKind, PairValues, PairedComparison, compare_all, mean_of_pairs,
};
use super::row::JudgedRow;
use crate::support::files::file_form::{FileForm, has_json_fields};
use crate::training::comparisons::encoders::panels::held_out::HeldOutPairs;
use crate::training::comparisons::encoders::probe::NamedProportion;
use crate::training::measurement::Proportion;

/// Type of this comparison, and the name of its result files.
pub const MEASURE: &str = "judge";
/// Name of the majority-class baseline.
const MAJORITY: &str = "majority class";

/// Results of all encoders on one set of held-out pairs.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedComparison {
    /// Type of comparison.
    pub measure: &'static str,
    /// What was trained for every encoder, and for how long.
    pub budget: String,
    /// Name of the set.
    pub set: String,
    /// Name of the base panel.
    pub base: String,
    /// Seeds of training.
    pub seeds: Vec<u64>,
    /// One row per encoder, in the order of the arguments.
    pub rows: Vec<JudgedRow>,
    /// The baseline that prefers the more frequent answer.
    pub majority_class: MajorityRow,
    /// Paired differences; Holm's correction is over all of them.
    pub differences: Vec<PairedComparison>,
}

/// Results of the majority-class baseline, which has neither image nor model.
#[derive(Clone, Debug, Serialize)]
pub struct MajorityRow {
    /// Order accuracy on all pairs.
    pub order_accuracy: Option<Proportion>,
    /// Order accuracy by question type.
    pub by_question_type: Vec<NamedProportion>,
    /// Order accuracy by modality.
    pub by_modality: Vec<NamedProportion>,
}

/// Outcomes of all encoders.
pub(in crate::training::comparisons::encoders::panels) struct ComparisonInput<'a> {
    /// Name of the base panel.
    pub(in crate::training::comparisons::encoders::panels) base: String,
    /// What was trained.
    pub(in crate::training::comparisons::encoders::panels) trained: String,
    /// The held-out pairs.
    pub(in crate::training::comparisons::encoders::panels) held_out: &'a HeldOutPairs,
    /// The encoders.
    pub(in crate::training::comparisons::encoders::panels) encoders: Vec<EncoderInput>,
}

impl JudgedComparison {
    /// The form of the JSON file.
    pub const JSON_FORM: FileForm = FileForm {
        name: "an encoder comparison of acem3",
        recognise: |file| has_json_fields(file, &["measure", "budget", "set", "rows"]),
    };

    /// Computes the statistics of all encoders and compares them.
    pub(in crate::training::comparisons::encoders::panels) fn new(
        input: ComparisonInput<'_>,
    ) -> Self {
        let ComparisonInput { base, trained, held_out, encoders } = input;
        let clusters: Vec<String> = held_out.pairs.iter().map(|p| p.cluster.clone()).collect();
        let mut seeds: Vec<u64> =
            encoders.iter().flat_map(|encoder| encoder.runs.iter().map(|run| run.seed)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let rows = encoders.into_iter().map(|encoder| JudgedRow::new(encoder, held_out, &clusters));
        let mut rows: Vec<JudgedRow> = rows.collect();
        let majority: PairValues = held_out.facts.iter().map(|f| Some(f.majority)).collect();
        let differences = compare_rows(&rows, &majority, &clusters);
        if let Some((first, others)) = rows.split_first_mut() {
            for (i, row) in others.iter_mut().enumerate() {
                // The comparisons with the first encoder come first, in the order of the rows.
                let with_first = differences.get(i).filter(|c| c.baseline == first.encoder);
                row.difference = with_first.and_then(|comparison| comparison.difference);
            }
        }
        Self {
            measure: MEASURE,
            budget: trained,
            set: held_out.name.clone(),
            base,
            seeds,
            rows,
            majority_class: majority_row(held_out, &majority, &clusters),
            differences,
        }
    }
}

/// Compares every two encoders, and each with blank images and with the majority class.
fn compare_rows(
    rows: &[JudgedRow],
    majority: &PairValues,
    clusters: &[String],
) -> Vec<PairedComparison> {
    let mut comparisons = Vec::new();
    for (i, baseline) in rows.iter().enumerate() {
        comparisons.extend(rows.iter().skip(i + 1).map(|row| ComparedValues {
            kind: EncoderComparisonKind::Encoders,
            encoder: &row.encoder,
            baseline: &baseline.encoder,
            values: [&row.order, &baseline.order],
        }));
    }
    for row in rows {
        comparisons.push(ComparedValues {
            kind: EncoderComparisonKind::BlankImage,
            encoder: &row.encoder,
            baseline: "blank image",
            values: [&row.order, &row.blank],
        });
        comparisons.push(ComparedValues {
            kind: EncoderComparisonKind::MajorityClass,
            encoder: &row.encoder,
            baseline: MAJORITY,
            values: [&row.order, majority],
        });
    }
    compare_all(clusters, &comparisons)
}

fn majority_row(held_out: &HeldOutPairs, values: &PairValues, clusters: &[String]) -> MajorityRow {
    let named = |name: String, includes: &dyn Fn(usize) -> bool| NamedProportion {
        name,
        proportion: mean_of_pairs(clusters, values, includes),
    };
    let types = held_out.groups(|facts| facts.question_types.clone()).into_iter();
    let modalities = held_out.groups(|facts| vec![facts.modality.clone()]).into_iter();
    MajorityRow {
        order_accuracy: mean_of_pairs(clusters, values, |_| true),
        by_question_type: types
            .map(|name| named(name.clone(), &|i| held_out.facts[i].question_types.contains(&name)))
            .collect(),
        by_modality: modalities
            .map(|name| named(name.clone(), &|i| held_out.facts[i].modality == name))
            .collect(),
    }
}

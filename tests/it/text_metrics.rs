//! Lexical metrics compared with sacrebleu, rouge-score, `SQuAD`'s evaluation and LLaVA-Med's
//! published code. `assets/golden/make_text_metrics.py` writes the expected values.

use acem3::analysis::metrics::{
    AnswerScores, BleuCounts, LexicalSettings, Metric, MetricOutcome, UncountedReason, score_answer,
};

use crate::encoders::load_tensors;
use crate::text_pairs::{generate_pairs, metric_answer, text_golden, text_json};

const METRICS: [Metric; 6] = [
    Metric::Em,
    Metric::F1,
    Metric::Bleu,
    Metric::Rouge,
    Metric::LlavaMedClosed,
    Metric::LlavaMedRecall,
];

/// One row of values of the reference implementations.
struct Expected<'a> {
    names: &'a [String],
    values: &'a [f32],
}

impl Expected<'_> {
    fn get(&self, name: &str) -> f64 {
        let column = self.names.iter().position(|n| n == name).unwrap();
        f64::from(self.values[column])
    }

    /// Returns a value in the range of acem3's column.
    fn scaled(&self, column: &str) -> f64 {
        let scale = if column.starts_with("bleu") { 100.0 } else { 1.0 };
        scale * self.get(column)
    }
}

/// Asserts that all columns of the metrics are equal to the fixture, and returns their number.
/// `prefix`: prefix of the names in the fixture.
fn assert_equal(
    scores: &AnswerScores,
    metrics: &[Metric],
    expected: &Expected,
    prefix: &str,
) -> usize {
    let mut compared = 0;
    for column in metrics.iter().flat_map(|metric| metric.columns()) {
        if column.corpus_order.is_some() {
            continue;
        }
        let expected_value = expected.scaled(&format!("{prefix}{}", column.name));
        match scores.get(column.name).unwrap() {
            MetricOutcome::Value(value) => {
                let tolerance = 1e-6 * column.range[1].max(1.0);
                assert!(
                    (value - expected_value).abs() < tolerance,
                    "{}: {value}, expected {expected_value}",
                    column.name
                );
                compared += 1;
            }
            // The reference implementations return zero for undefined values.
            MetricOutcome::Uncounted(UncountedReason::NoWords) => {
                assert!(expected_value.abs() < 1e-9 || !has_words(expected));
            }
            // The fixture has −1 for answers that the metric excludes.
            MetricOutcome::Uncounted(UncountedReason::Excluded) => {
                assert!((expected_value + 1.0).abs() < 1e-9);
            }
            other => panic!("{}: {other:?}", column.name),
        }
    }
    compared
}

fn has_words(expected: &Expected) -> bool {
    expected.get("has_words") > 0.5
}

#[test]
fn lexical_metrics_match_reference() {
    let names: Vec<String> = serde_json::from_value(text_json("columns.json")).unwrap();
    let fixture = load_tensors(&text_golden().join("lexical.safetensors"));
    let rows = fixture["values"].to_vec2::<f32>().unwrap();
    let mut compared = 0;
    for (i, (pair, values)) in generate_pairs(rows.len()).iter().zip(&rows).enumerate() {
        let expected = Expected { names: &names, values };
        let answer = metric_answer(i, pair);
        let plain = score_answer(&answer, &METRICS, LexicalSettings::default());
        let stemmed = score_answer(
            &answer,
            &[Metric::Rouge],
            LexicalSettings { uses_stems: true, ..LexicalSettings::default() },
        );
        compared += assert_equal(&plain, &METRICS, &expected, "");
        compared += assert_equal(&stemmed, &[Metric::Rouge], &expected, "stem_");
    }
    assert!(compared > 70_000, "{compared} values were compared");
}

/// Chinese characters mixed with Latin words, punctuation and full-width digits.
#[test]
fn chinese_bleu_matches_reference() {
    let wanted: Vec<[f64; 4]> = serde_json::from_value(text_json("chinese.json")).unwrap();
    let settings = LexicalSettings { is_chinese: true, ..LexicalSettings::default() };
    let mut compared = 0;
    for (i, (pair, wanted)) in generate_pairs(wanted.len()).iter().zip(&wanted).enumerate() {
        let scores = score_answer(&metric_answer(i, pair), &[Metric::Bleu], settings);
        for (name, wanted) in ["bleu1", "bleu2", "bleu3", "bleu4"].iter().zip(wanted) {
            if let MetricOutcome::Value(value) = scores.get(name).unwrap() {
                assert!((value - wanted).abs() < 1e-4, "{pair:?}: {name} {value}, not {wanted}");
                compared += 1;
            }
        }
    }
    assert!(compared > 3_500, "{compared} values were compared");
}

#[test]
fn corpus_bleu_matches_reference() {
    let pairs = generate_pairs(3000);
    let counts: Vec<BleuCounts> = pairs
        .iter()
        .enumerate()
        .map(|(i, pair)| {
            score_answer(&metric_answer(i, pair), &[Metric::Bleu], LexicalSettings::default())
        })
        .map(|scores| scores.bleu.unwrap_or_default())
        .collect();
    for part in text_json("corpus.json").as_array().unwrap() {
        let index = |name: &str| part[name].as_u64().unwrap() as usize;
        let range = index("start")..index("end");
        let sum: BleuCounts = counts[range].iter().copied().sum();
        for (order, wanted) in (1..).zip(part["bleu"].as_array().unwrap()) {
            let (got, wanted) = (sum.corpus(order), wanted.as_f64().unwrap());
            assert!((got - wanted).abs() < 1e-4, "{part}: {got}");
        }
    }
}

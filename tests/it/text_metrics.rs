//! Metrics of words against sacrebleu, rouge-score, `SQuAD`'s evaluation and LLaVA-Med's published code:
//! `assets/golden/make_text_metrics.py` says how the values were made.

use acem3::analysis::metrics::{
    AnswerScores, BleuCounts, LexicalSettings, Metric, MetricOutcome, UncountedReason, score,
};

use crate::encoders::tensors;
use crate::text_pairs::{answer, pairs, text_golden, text_json};

const METRICS: [Metric; 6] = [
    Metric::Em,
    Metric::F1,
    Metric::Bleu,
    Metric::Rouge,
    Metric::LlavaMedClosed,
    Metric::LlavaMedRecall,
];

/// One row of the reference implementations' values.
struct Expected<'a> {
    names: &'a [String],
    values: &'a [f32],
}

impl Expected<'_> {
    fn get(&self, name: &str) -> f64 {
        let column = self.names.iter().position(|n| n == name).unwrap();
        f64::from(self.values[column])
    }

    /// The value in the range of our column.
    fn of(&self, column: &str) -> f64 {
        let scale = if column.starts_with("bleu") {
            100.0
        } else {
            1.0
        };
        scale * self.get(column)
    }
}

/// Holds all columns of a metric equal; `prefix` is that of the names in the fixture.
fn hold(scores: &AnswerScores, metrics: &[Metric], expected: &Expected, prefix: &str) -> usize {
    let mut held = 0;
    for column in metrics.iter().flat_map(|metric| metric.columns()) {
        if column.corpus.is_some() {
            continue;
        }
        let wanted = expected.of(&format!("{prefix}{}", column.name));
        match scores.get(column.name).unwrap() {
            MetricOutcome::Value(value) => {
                let most = 1e-6 * column.range[1].max(1.0);
                assert!(
                    (value - wanted).abs() < most,
                    "{}: {value}, expected {wanted}",
                    column.name
                );
                held += 1;
            }
            // What is undefined is zero there.
            MetricOutcome::Uncounted(UncountedReason::NoWords) => {
                assert!(wanted.abs() < 1e-9 || !has_words(expected));
            }
            MetricOutcome::Uncounted(UncountedReason::LeftOut) => {
                assert!((wanted + 1.0).abs() < 1e-9)
            }
            other => panic!("{}: {other:?}", column.name),
        }
    }
    held
}

fn has_words(expected: &Expected) -> bool {
    expected.get("has_words") > 0.5
}

#[test]
fn every_metric_of_words_equals_its_reference() {
    let names: Vec<String> = serde_json::from_value(text_json("columns.json")).unwrap();
    let kept = tensors(&text_golden().join("lexical.safetensors"));
    let rows = kept["values"].to_vec2::<f32>().unwrap();
    let mut held = 0;
    for (i, (pair, values)) in pairs(rows.len()).iter().zip(&rows).enumerate() {
        let expected = Expected {
            names: &names,
            values,
        };
        let answer = answer(i, pair);
        let plain = score(&answer, &METRICS, LexicalSettings::default());
        let stemmed = score(
            &answer,
            &[Metric::Rouge],
            LexicalSettings {
                stemmed: true,
                ..LexicalSettings::default()
            },
        );
        held += hold(&plain, &METRICS, &expected, "");
        held += hold(&stemmed, &[Metric::Rouge], &expected, "stem_");
    }
    assert!(held > 70_000, "{held} values were compared");
}

/// Every Chinese character a word, among Latin ones, signs and full-width digits.
#[test]
fn bleu_of_chinese_equals_its_reference() {
    let wanted: Vec<[f64; 4]> = serde_json::from_value(text_json("chinese.json")).unwrap();
    let settings = LexicalSettings {
        chinese: true,
        ..LexicalSettings::default()
    };
    let mut held = 0;
    for (i, (pair, wanted)) in pairs(wanted.len()).iter().zip(&wanted).enumerate() {
        let scores = score(&answer(i, pair), &[Metric::Bleu], settings);
        for (name, wanted) in ["bleu1", "bleu2", "bleu3", "bleu4"].iter().zip(wanted) {
            if let MetricOutcome::Value(value) = scores.get(name).unwrap() {
                assert!(
                    (value - wanted).abs() < 1e-4,
                    "{pair:?}: {name} {value}, not {wanted}"
                );
                held += 1;
            }
        }
    }
    assert!(held > 3_500, "{held} values were compared");
}

#[test]
fn bleu_of_a_corpus_equals_its_reference() {
    let pairs = pairs(3000);
    let counts: Vec<BleuCounts> = pairs
        .iter()
        .enumerate()
        .map(|(i, pair)| {
            score(
                &answer(i, pair),
                &[Metric::Bleu],
                LexicalSettings::default(),
            )
        })
        .map(|scores| scores.bleu.unwrap_or_default())
        .collect();
    for part in text_json("corpus.json").as_array().unwrap() {
        let place = |name: &str| part[name].as_u64().unwrap() as usize;
        let range = place("start")..place("end");
        let sum: BleuCounts = counts[range].iter().copied().sum();
        for (order, wanted) in (1..).zip(part["bleu"].as_array().unwrap()) {
            let (got, wanted) = (sum.corpus(order), wanted.as_f64().unwrap());
            assert!((got - wanted).abs() < 1e-4, "{part}: {got}");
        }
    }
}

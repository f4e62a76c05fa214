//! `BERTScore` and `BARTScore` compared with bert-score and transformers.
//! `assets/golden/make_text_metrics.py` writes the checkpoints and the expected values.

use std::collections::BTreeMap;
use std::path::Path;

use acem3::analysis::metrics::{
    AnswerScores, BartSettings, BertSettings, LearnedMetrics, MetricAnswer, MetricOutcome,
    UncountedReason,
};
use acem3::checkpoints::hub::HubArgs;
use acem3::support::device::Placement;
use serde_json::Value;

use crate::text_pairs::{generate_pairs, metric_answer, text_golden, text_json};

const COLUMNS: [&str; 3] = ["bertscore_precision", "bertscore_recall", "bertscore_f1"];

fn answers(n: usize) -> Vec<MetricAnswer> {
    let pairs = generate_pairs(n);
    pairs.iter().enumerate().map(|(i, pair)| metric_answer(i, pair)).collect()
}

fn bert_settings(name: &str, layer: usize) -> BertSettings {
    BertSettings {
        model: text_golden().join(name).display().to_string(),
        layer: Some(layer),
        uses_idf: false,
        baseline: None,
    }
}

/// Computes metrics of the answers in batches of `batch`. Returns the scores and the notes.
fn compute(
    answers: &[MetricAnswer],
    batch: usize,
    score: impl Fn(&mut LearnedMetrics, &mut [AnswerScores]) -> anyhow::Result<()>,
) -> anyhow::Result<(Vec<AnswerScores>, Vec<String>)> {
    let mut learned = LearnedMetrics {
        placement: Placement::cpu(),
        batch_size: batch,
        hub: HubArgs { offline: true, allow_http: false },
        quiet: true,
        progress: &mut |_, _, _| {},
        settings: BTreeMap::new(),
        notes: Vec::new(),
    };
    let mut scores = vec![AnswerScores::default(); answers.len()];
    score(&mut learned, &mut scores)?;
    Ok((scores, learned.notes))
}

fn bert_scores(
    answers: &[MetricAnswer],
    settings: &BertSettings,
    batch: usize,
) -> Vec<AnswerScores> {
    compute(answers, batch, |learned, scores| learned.add_bert_score(answers, scores, settings))
        .unwrap()
        .0
}

/// Asserts that columns are close to lists of values, and returns the largest difference.
fn assert_close(scores: &[AnswerScores], columns: &[&str], expected: &Value) -> f64 {
    let mut max_difference = 0.0_f64;
    for (column, expected_value) in columns.iter().zip(expected.as_array().unwrap()) {
        for (i, (scores, expected_value)) in
            scores.iter().zip(expected_value.as_array().unwrap()).enumerate()
        {
            match scores.get(column).unwrap() {
                MetricOutcome::Value(value) => {
                    let difference = (value - expected_value.as_f64().unwrap()).abs();
                    assert!(
                        difference < 1e-4,
                        "{column} of pair {i}: {value}, expected {expected_value}"
                    );
                    max_difference = max_difference.max(difference);
                }
                // bert-score returns zero for an empty reference. If all weights are zero, its
                // value is undefined.
                MetricOutcome::Uncounted(UncountedReason::NoWords | UncountedReason::NoWeight) => {
                    let expected_value = expected_value.as_f64().unwrap_or_default();
                    assert!(
                        expected_value.abs() < 1e-9 || expected_value < -0.05,
                        "pair {i}: {expected_value}"
                    );
                }
                other => panic!("{column} of pair {i}: {other:?}"),
            }
        }
    }
    max_difference
}

#[test]
fn bertscore_matches_reference_at_every_layer() {
    let expected = text_json("models.json");
    let answers = answers(120);
    let mut max_difference = 0.0_f64;
    for name in ["bert", "roberta"] {
        for layer in 0..4 {
            let settings = bert_settings(name, layer);
            let scores = bert_scores(&answers, &settings, 16);
            max_difference = max_difference.max(assert_close(
                &scores,
                &COLUMNS,
                &expected[format!("{name}_{layer}")],
            ));
            let settings = BertSettings { uses_idf: true, ..settings };
            let scores = bert_scores(&answers, &settings, 16);
            let expected = &expected[format!("{name}_{layer}_idf")];
            max_difference = max_difference.max(assert_close(&scores, &COLUMNS, expected));
        }
    }
    assert!(max_difference < 2e-5, "{max_difference}");
}

#[test]
fn rescaling_uses_the_baseline_of_the_layer() {
    let answers = answers(120);
    let settings = BertSettings {
        baseline: Some(text_golden().join("baseline.tsv")),
        ..bert_settings("bert", 2)
    };
    let scores = bert_scores(&answers, &settings, 16);
    let columns = COLUMNS.map(|column| format!("{column}_rescaled"));
    let columns = columns.each_ref().map(String::as_str);
    assert_close(&scores, &columns, &text_json("models.json")["bert_2_rescaled"]);
}

#[test]
fn old_and_new_checkpoint_files_give_equal_scores() {
    let answers = answers(40);
    let new = bert_scores(&answers, &bert_settings("bert", 3), 8);
    assert_eq!(bert_scores(&answers, &bert_settings("bert-old", 3), 8), new);
    let bart_scores_of = |folder: &Path| bart_scores(&answers, folder, 8).unwrap().0;
    let dir = tempfile::tempdir().unwrap();
    for (from, name) in [
        ("bart-old", "config.json"),
        ("bart-old", "vocab.json"),
        ("bart-old", "merges.txt"),
        ("bart", "model.safetensors"),
    ] {
        std::fs::copy(text_golden().join(from).join(name), dir.path().join(name)).unwrap();
    }
    assert_eq!(bart_scores_of(dir.path()), bart_scores_of(&text_golden().join("bart")));
}

fn bart_scores(
    answers: &[MetricAnswer],
    folder: &Path,
    batch: usize,
) -> anyhow::Result<(Vec<AnswerScores>, Vec<String>)> {
    let settings = BartSettings { model: folder.display().to_string() };
    compute(answers, batch, |learned, scores| learned.add_bart_score(answers, scores, &settings))
}

#[test]
fn bartscore_matches_reference_in_both_directions() {
    let answers = answers(120);
    let (scores, notes) = bart_scores(&answers, &text_golden().join("bart"), 16).unwrap();
    let columns = ["bartscore", "bartscore_reverse"];
    let max_difference = assert_close(&scores, &columns, &text_json("models.json")["bart"]);
    assert!(max_difference < 2e-5, "{max_difference}");
    // Some of the texts have more than the model's 64 tokens.
    assert!(notes.iter().any(|note| note.contains("longer than")), "{notes:?}");
}

/// bert-score matches padding tokens too, so its scores depend on the batch. Those of acem3 do not.
#[test]
fn scores_do_not_depend_on_batch_size() {
    let answers = answers(60);
    let one = bert_scores(&answers, &bert_settings("roberta", 3), 1);
    for batch in [3, 64] {
        assert_eq!(bert_scores(&answers, &bert_settings("roberta", 3), batch), one);
    }
    let bart = text_golden().join("bart");
    let one = bart_scores(&answers, &bart, 1).unwrap();
    assert_eq!(bart_scores(&answers, &bart, 64).unwrap(), one);
}

//! `BERTScore` and `BARTScore` against bert-score and transformers: `assets/golden/make_text_metrics.py` says
//! how the checkpoints and values were made.

use std::collections::BTreeMap;
use std::path::Path;

use acem3::analysis::metrics::{
    AnswerScores, BartSettings, BertSettings, LearnedMetrics, MetricAnswer, MetricOutcome,
    UncountedReason,
};
use acem3::checkpoints::hub::HubFlags;
use acem3::support::device::Placement;
use serde_json::Value;

use crate::text_pairs::{answer, pairs, text_golden, text_json};

const COLUMNS: [&str; 3] = ["bertscore_precision", "bertscore_recall", "bertscore_f1"];

fn answers(n: usize) -> Vec<MetricAnswer> {
    let pairs = pairs(n);
    pairs
        .iter()
        .enumerate()
        .map(|(i, pair)| answer(i, pair))
        .collect()
}

fn bert(name: &str, layer: usize) -> BertSettings {
    BertSettings {
        model: text_golden().join(name).display().to_string(),
        layer: Some(layer),
        idf: false,
        baseline: None,
    }
}

/// What the models say of the answers, in batches of some size; and the notes.
fn run(
    answers: &[MetricAnswer],
    batch: usize,
    work: impl Fn(&mut LearnedMetrics, &mut [AnswerScores]) -> anyhow::Result<()>,
) -> anyhow::Result<(Vec<AnswerScores>, Vec<String>)> {
    let mut learned = LearnedMetrics {
        place: Placement::cpu(),
        batch,
        hub: HubFlags { offline: true },
        quiet: true,
        progress: &mut |_, _, _| {},
        settings: BTreeMap::new(),
        notes: Vec::new(),
    };
    let mut scores = vec![AnswerScores::default(); answers.len()];
    work(&mut learned, &mut scores)?;
    Ok((scores, learned.notes))
}

fn bert_scores(
    answers: &[MetricAnswer],
    settings: &BertSettings,
    batch: usize,
) -> Vec<AnswerScores> {
    run(answers, batch, |learned, scores| {
        learned.bert(answers, scores, settings)
    })
    .unwrap()
    .0
}

/// Holds columns equal to lists of values; gives the largest distance.
fn hold(scores: &[AnswerScores], columns: &[&str], expected: &Value) -> f64 {
    let mut worst = 0.0_f64;
    for (column, wanted) in columns.iter().zip(expected.as_array().unwrap()) {
        for (i, (scores, wanted)) in scores.iter().zip(wanted.as_array().unwrap()).enumerate() {
            match scores.get(column).unwrap() {
                MetricOutcome::Value(value) => {
                    let far = (value - wanted.as_f64().unwrap()).abs();
                    assert!(
                        far < 1e-4,
                        "{column} of pair {i}: {value}, expected {wanted}"
                    );
                    worst = worst.max(far);
                }
                // An empty reference is a zero there; weights that are all zero make nothing of it.
                MetricOutcome::Uncounted(UncountedReason::NoWords | UncountedReason::NoWeight) => {
                    let wanted = wanted.as_f64().unwrap_or_default();
                    assert!(wanted.abs() < 1e-9 || wanted < -0.05, "pair {i}: {wanted}");
                }
                other => panic!("{column} of pair {i}: {other:?}"),
            }
        }
    }
    worst
}

#[test]
fn bert_score_equals_its_reference_at_every_layer() {
    let expected = text_json("models.json");
    let answers = answers(120);
    let mut worst = 0.0_f64;
    for name in ["bert", "roberta"] {
        for layer in 0..4 {
            let settings = bert(name, layer);
            let scores = bert_scores(&answers, &settings, 16);
            worst = worst.max(hold(
                &scores,
                &COLUMNS,
                &expected[format!("{name}_{layer}")],
            ));
            let settings = BertSettings {
                idf: true,
                ..settings
            };
            let scores = bert_scores(&answers, &settings, 16);
            let expected = &expected[format!("{name}_{layer}_idf")];
            worst = worst.max(hold(&scores, &COLUMNS, expected));
        }
    }
    assert!(worst < 2e-5, "{worst}");
}

#[test]
fn rescaling_takes_the_row_of_the_layer() {
    let answers = answers(120);
    let settings = BertSettings {
        baseline: Some(text_golden().join("baseline.tsv")),
        ..bert("bert", 2)
    };
    let scores = bert_scores(&answers, &settings, 16);
    let columns = COLUMNS.map(|column| format!("{column}_rescaled"));
    let columns = columns.each_ref().map(String::as_str);
    hold(
        &scores,
        &columns,
        &text_json("models.json")["bert_2_rescaled"],
    );
}

#[test]
fn old_files_of_a_checkpoint_are_the_same_checkpoint() {
    let answers = answers(40);
    let new = bert_scores(&answers, &bert("bert", 3), 8);
    assert_eq!(bert_scores(&answers, &bert("bert-old", 3), 8), new);
    let likely = |folder: &Path| bart_scores(&answers, folder, 8).unwrap().0;
    let dir = tempfile::tempdir().unwrap();
    for (from, name) in [
        ("bart-old", "config.json"),
        ("bart-old", "vocab.json"),
        ("bart-old", "merges.txt"),
        ("bart", "model.safetensors"),
    ] {
        std::fs::copy(text_golden().join(from).join(name), dir.path().join(name)).unwrap();
    }
    assert_eq!(likely(dir.path()), likely(&text_golden().join("bart")));
}

fn bart_scores(
    answers: &[MetricAnswer],
    folder: &Path,
    batch: usize,
) -> anyhow::Result<(Vec<AnswerScores>, Vec<String>)> {
    let settings = BartSettings {
        model: folder.display().to_string(),
    };
    run(answers, batch, |learned, scores| {
        learned.bart(answers, scores, &settings)
    })
}

#[test]
fn bart_score_equals_its_reference_in_both_directions() {
    let answers = answers(120);
    let (scores, notes) = bart_scores(&answers, &text_golden().join("bart"), 16).unwrap();
    let columns = ["bartscore", "bartscore_reverse"];
    let worst = hold(&scores, &columns, &text_json("models.json")["bart"]);
    assert!(worst < 2e-5, "{worst}");
    // Some of the texts have more than the model's 64 tokens.
    assert!(
        notes.iter().any(|note| note.contains("longer than")),
        "{notes:?}"
    );
}

/// In a batch bert-score lets padding take part in the match; here no batch moves a number.
#[test]
fn batches_do_not_move_a_number() {
    let answers = answers(60);
    let one = bert_scores(&answers, &bert("roberta", 3), 1);
    for batch in [3, 64] {
        assert_eq!(bert_scores(&answers, &bert("roberta", 3), batch), one);
    }
    let bart = text_golden().join("bart");
    let one = bart_scores(&answers, &bart, 1).unwrap();
    assert_eq!(bart_scores(&answers, &bart, 64).unwrap(), one);
}

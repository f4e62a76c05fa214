//! Several samples of an analysis: texts that split where several tokens are probable.

use acem3_experts::generate::{
    Engine, GenerationSettings, GenerationTask, PrefixCache, TaskQueue, TextAlternative,
};
use serde_json::Value;

use crate::folder::Folder;
use crate::panel::{copy_panel, edit_spec};
use crate::tiny_panel;

const SETTINGS: GenerationSettings = GenerationSettings { analysis_tokens: 12, scores_only: false };

/// Returns the texts of all tasks.
fn texts(engine: &Engine, tasks: Vec<GenerationTask>) -> Vec<Vec<TextAlternative>> {
    let mut results = vec![Vec::new(); tasks.len()];
    let (mut cache, mut queue) = (PrefixCache::default(), TaskQueue::default());
    for task in tasks {
        engine.enqueue(&mut queue, task);
    }
    while !queue.is_empty() {
        for task in engine.step(&mut queue, &mut cache).unwrap() {
            results[task.number] = task.texts.unwrap();
        }
    }
    results
}

fn tasks(engine: &Engine, samples: usize) -> Vec<GenerationTask> {
    let tasks = tiny_panel::three_pair_tasks(engine).into_iter();
    tasks.map(|task| GenerationTask { samples, ..task }).collect()
}

fn analyses(text: &TextAlternative) -> Vec<&str> {
    text.ratings.iter().map(|rating| rating.analysis.as_str()).collect()
}

#[test]
fn samples_cover_different_texts_and_weights_sum_to_one() {
    let engine = tiny_panel::panel(SETTINGS);
    let (mut splits, mut differs) = (0, false);
    for alternatives in texts(&engine, tasks(&engine, 6)) {
        assert_eq!(alternatives.iter().map(|text| text.samples).sum::<usize>(), 6);
        let weight: f64 = alternatives.iter().map(|text| text.weight).sum();
        assert!((weight - 1.0).abs() < 1e-9, "{weight}");
        let mut next = 0;
        for text in &alternatives {
            assert_eq!(text.first_sample, next);
            next += text.samples;
        }
        differs |= alternatives.iter().any(|text| analyses(text) != analyses(&alternatives[0]));
        splits += usize::from(alternatives.len() > 1);
    }
    assert!(splits > 0 && differs, "no text has split");
}

#[test]
fn texts_do_not_depend_on_the_batch_the_memory_or_other_samples() {
    let engine = tiny_panel::panel(SETTINGS);
    let all = tasks(&engine, 5);
    let expected = texts(&engine, all.clone());
    let alone: Vec<_> = all.iter().flat_map(|task| texts(&engine, vec![task.clone()])).collect();
    assert_eq!(alone, expected);
    let mut limited = tiny_panel::panel(SETTINGS);
    limited.limit_memory(3_000_000);
    assert_eq!(texts(&limited, all), expected);
    // One sample is the most probable text, as without samples.
    let one = texts(&engine, tasks(&engine, 1));
    let generated = engine.generate(&tasks(&engine, 1), &mut PrefixCache::default()).unwrap();
    for (texts, ratings) in one.into_iter().zip(generated) {
        assert_eq!(texts.len(), 1);
        assert_eq!(texts[0].ratings, ratings.unwrap());
    }
}

/// The first token of a text with several samples splits by the probabilities of a text that starts
/// with each of them.
#[test]
fn average_of_texts_is_the_weighted_mean_of_their_scores() {
    let engine = tiny_panel::panel(SETTINGS);
    let all = tasks(&engine, 4);
    let averages = engine.generate(&all, &mut PrefixCache::default()).unwrap();
    for (alternatives, average) in texts(&engine, all).into_iter().zip(averages) {
        for (i, rating) in average.unwrap().iter().enumerate() {
            let expected = alternatives.iter().map(|t| t.weight * t.ratings[i].score.expected());
            let difference = expected.sum::<f64>() - rating.score.expected();
            assert!(difference.abs() < 1e-5, "{difference}");
            let weights = rating.alternatives.iter().map(|alternative| alternative.weight);
            assert!(rating.alternatives.is_empty() || (weights.sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}

/// Returns the final score of a presentation order, averaged over its alternatives.
fn mean_score(order: &Value, response: usize) -> f64 {
    let conclusion = &order["conclusion"];
    let alternatives = conclusion.get("alternatives").and_then(|all| all[response].as_array());
    match alternatives.filter(|alternatives| !alternatives.is_empty()) {
        None => conclusion["scores"][response].as_f64().unwrap(),
        Some(alternatives) => {
            let weighted = alternatives
                .iter()
                .map(|a| a["weight"].as_f64().unwrap() * a["score"].as_f64().unwrap());
            weighted.sum()
        }
    }
}

#[test]
fn records_have_alternatives_and_resume_needs_the_same_samples() {
    let folder = Folder::empty();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo");
    let judge = |out: &str, flags: &[&str]| {
        folder.run(&[&["judge", demo, "--out", out, "--limit", "4"], flags].concat())
    };
    let plain = judge("plain", &[]);
    assert_eq!(plain.exit_code, 0, "{}", plain.stderr);
    assert_eq!(judge("one", &["--samples", "1"]).exit_code, 0);
    assert_eq!(folder.read("one/records.jsonl"), folder.read("plain/records.jsonl"));
    assert!(!folder.read("plain/records.jsonl").contains("alternatives"));
    let several = judge("several", &["--samples", "8"]);
    assert_eq!(several.exit_code, 0, "{}", several.stderr);
    let again = judge("again", &["--samples", "8", "--batch-size", "1"]);
    assert_eq!(again.exit_code, 0, "{}", again.stderr);
    assert_eq!(folder.read("again/records.jsonl"), folder.read("several/records.jsonl"));
    let mut different = 0;
    for record in folder.records("several") {
        for order in record["orders"].as_array().unwrap() {
            let aspects = order["aspects"].as_object().unwrap().values();
            let criteria = aspects.flat_map(|aspect| aspect.as_object().unwrap().values());
            for scores in criteria.chain([&order["conclusion"]]) {
                let Some(all) = scores.get("alternatives").and_then(Value::as_array) else {
                    assert!(scores.get("between").is_none());
                    continue;
                };
                different += 1;
                assert_eq!(scores["between"].as_array().map(Vec::len), Some(2));
                for (alternatives, expected) in
                    all.iter().zip(scores["expected"].as_array().unwrap())
                {
                    let alternatives = alternatives.as_array().unwrap();
                    let number = |value: &Value, name: &str| value[name].as_f64().unwrap();
                    let mean =
                        alternatives.iter().map(|a| number(a, "weight") * number(a, "expected"));
                    let difference = mean.sum::<f64>() - expected.as_f64().unwrap();
                    assert!(alternatives.is_empty() || difference.abs() < 2e-3, "{scores}");
                }
            }
        }
    }
    assert!(different > 0, "no analysis differs");
    for record in folder.records("several") {
        for response in 0..2 {
            let orders = record["orders"].as_array().unwrap();
            let mean: f64 = orders.iter().map(|order| mean_score(order, response) / 2.0).sum();
            let difference = mean - record["scores"][response].as_f64().unwrap();
            assert!(difference.abs() < 1e-3, "{record}");
        }
    }
    assert_eq!(folder.manifest("several")["provenance"]["samples"], "8");
    let other = judge("several", &["--samples", "4"]);
    assert_eq!(other.exit_code, 2);
    assert!(other.stderr.contains("samples was 8, is 4"), "{}", other.stderr);
    for (flags, message) in [
        (vec!["--samples", "0"], "expected a number from 1 to 64"),
        (vec!["--samples", "2", "--scores-only"], "no analysis that could differ"),
        (vec!["--samples", "2", "--panel", "scripted:"], "a scripted judge writes one text"),
    ] {
        let output = judge("none", &flags);
        assert_eq!(output.exit_code, 2, "{flags:?}");
        assert!(output.stderr.contains(message), "{}", output.stderr);
    }
}

/// A panel states how many samples it takes without the flag. Means over samples are no training data.
#[test]
fn panel_states_its_samples() {
    let folder = Folder::empty();
    let copy = copy_panel();
    let panel = copy.path();
    edit_spec(panel, "analysis_tokens = 48\n", "analysis_tokens = 48\nsamples = 4\n");
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo");
    let judge = |out: &str, flags: &[&str]| {
        let args = ["judge", demo, "--panel", panel.to_str().unwrap(), "--out", out];
        folder.run(&[&args[..], &["--limit", "4"], flags].concat())
    };
    for (out, flags) in
        [("own", &[][..]), ("four", &["--samples", "4"]), ("one", &["--samples", "1"])]
    {
        let output = judge(out, flags);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
    }
    let records = ["own", "four", "one"].map(|out| folder.read(&format!("{out}/records.jsonl")));
    assert_eq!(records[0], records[1]);
    assert!(records[0].contains("alternatives") && !records[2].contains("alternatives"));
    assert_eq!(judge("scores", &["--scores-only"]).exit_code, 0);
    assert!(folder.manifest("scores")["provenance"].get("samples").is_none());
    let convert = ["data", "evaluations", "own", "--check", "none", "--out", "data"];
    assert_eq!(folder.run(&convert).exit_code, 0);
    let rejected = folder.read("data/rejected.jsonl");
    assert!(rejected.lines().count() > 0, "all samples are equal");
    assert!(rejected.lines().all(|line| line.contains("judge with --samples 1")), "{rejected}");
    edit_spec(panel, "samples = 4", "samples = 0");
    let invalid = judge("invalid", &[]);
    assert_eq!(invalid.exit_code, 2);
    assert!(invalid.stderr.contains("expected a number from 1 to 64"), "{}", invalid.stderr);
}

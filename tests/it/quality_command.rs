//! `acem3 data quality`: qualities from text statistics and from sentence embeddings.

use serde_json::{Map, Value, json};

use crate::folder::{Folder, ProgramOutput};
use crate::sentence_encoder::write_encoder;
use crate::text_pairs::text_golden;

/// Writes `n` evaluations, of which the first `rated` have ratings. Good and bad ones differ in their
/// words. Every tenth is longer than the input of the encoder.
fn write_evaluations(folder: &Folder, n: usize, rated: usize) {
    let line = |i: usize| {
        let is_good = i.is_multiple_of(2);
        let words = if is_good { "pleural effusion of the left lung" } else { "no brain mass two" };
        let more = if i.is_multiple_of(10) { " enlarged heart".repeat(30) } else { String::new() };
        let mut line = json!({
            "prompt": "Which side?", "completion": format!("{words} {} {}{more}", i % 3, i % 7),
        });
        if i < rated {
            line["quality"] = json!(if is_good { 4 } else { 2 });
        }
        line.to_string() + "\n"
    };
    folder.write("evaluations.jsonl", &(0..n).map(line).collect::<String>());
}

fn run(folder: &Folder, more: &[&str]) -> ProgramOutput {
    let args = ["data", "quality", "evaluations.jsonl", "--out", "rated.jsonl"];
    folder.run(&[&args[..], more].concat())
}

/// Returns the folder of the tiny encoder.
fn bert() -> String {
    text_golden().join("bert").display().to_string()
}

#[test]
fn embeddings_are_compared_and_written() {
    let folder = Folder::with_cases(0);
    write_evaluations(&folder, 60, 40);
    let bert = bert();
    let output = run(&folder, &["--embeddings", &bert]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    for expected in [
        "40 of 60 evaluations rated, 20 of them 4 or better\n",
        "first token through BERT's pooler (as SimCSE; no modules.json)\n",
        "truncated to 48 tokens: 6 of 60\n",
        "text statistics, logistic regression: 100.0 % (95 % CI ",
        "embeddings, support vector machine (C = ",
        "majority class: 50.0 %\n",
        "difference: ",
        "`quality` is the probability of the support vector machine\n",
    ] {
        assert!(output.stdout.contains(expected), "{expected}: {}", output.stdout);
    }
    let first = folder.read("rated.jsonl");
    for (i, line) in first.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let quality = line["quality"].as_f64().unwrap();
        assert_eq!(quality > 0.5, i.is_multiple_of(2), "{line}");
        assert_eq!(line.get("rated").is_some(), i < 40);
    }
    // The same with one thread.
    let args = ["data", "quality", "evaluations.jsonl", "--out", "rated.jsonl"];
    let args = [&args[..], &["--embeddings", &bert]].concat();
    let single = folder.command(&args).env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&single.stdout), output.stdout);
    assert_eq!(folder.read("rated.jsonl"), first);
}

#[test]
fn json_has_both_classifiers() {
    let folder = Folder::with_cases(0);
    write_evaluations(&folder, 40, 40);
    let parse = |more: &[&str]| -> Value {
        let output = run(&folder, &[&["--format", "json"], more].concat());
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let plain = parse(&[]);
    assert_eq!((&plain["written"], plain.get("embeddings")), (&json!("text"), None));
    let pooled = json!({
        "modules.json": [{"path": "", "type": "m.Transformer"}, {"path": "1_Pooling", "type": "m.Pooling"}],
        "1_Pooling/config.json": {"pooling_mode": "mean"},
        "sentence_bert_config.json": {"max_seq_length": 16},
    });
    let files: Map<String, Value> = pooled.as_object().unwrap().clone();
    let encoder = write_encoder(&folder.path("cases"), "bert", &files);
    let both = parse(&["--embeddings", &encoder.display().to_string()]);
    assert_eq!(both["written"], "embeddings");
    assert_eq!((&both["right"], &both["interval"]), (&plain["right"], &plain["interval"]));
    let embeddings = &both["embeddings"];
    assert_eq!(embeddings["encoder"]["pooling"], "mean of tokens (modules.json)");
    assert_eq!(
        (&embeddings["encoder"]["max_tokens"], &embeddings["truncated"]),
        (&json!(16), &json!(4))
    );
    let difference = embeddings["right"].as_f64().unwrap() - both["right"].as_f64().unwrap();
    assert!((embeddings["difference"]["value"].as_f64().unwrap() - difference).abs() < 1e-9);
}

#[test]
fn unusable_input_is_an_error_before_anything_is_written() {
    let folder = Folder::with_cases(0);
    write_evaluations(&folder, 40, 19);
    for (more, expected) in [
        // Ratings are checked before the encoder is opened.
        (&["--embeddings", "none"][..], "19 of 40 evaluations have a `quality`"),
        (&[], "19 of 40 evaluations have a `quality`"),
    ] {
        let output = run(&folder, more);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    write_evaluations(&folder, 40, 40);
    let bart = text_golden().join("bart").display().to_string();
    for (model, expected) in [
        ("./none", "--embeddings ./none: no such folder"),
        ("owner/name", "forbids access to the hub"),
        (&bart, "model_type is bart"),
    ] {
        let output = run(&folder, &["--embeddings", model, "--offline"]);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{}", output.stderr);
    }
    assert!(!folder.path("rated.jsonl").exists());
}

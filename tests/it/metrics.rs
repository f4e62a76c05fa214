//! `acem3 metrics`: input, uncounted answers, output formats, and errors of learned metrics.

use std::fs;
use std::path::Path;

use acem3::analysis::metrics::{COLUMNS, LexicalSettings, Metric, MetricOutcome, score_answer};
use candle::{Device, Tensor};
use serde_json::{Value, json};

use crate::cases::public_data;
use crate::encoders::load_tensors;
use crate::folder::{Folder, ProgramOutput};
use crate::text_pairs::{generate_pairs, metric_answer, text_golden};

/// Returns a case with an optional reference and the answers of models `a` and `b`.
fn case(id: &str, reference: Option<&str>, texts: [&str; 2]) -> Value {
    let [a, b] = texts;
    json!({
        "id": id, "question": "what is it?", "reference": reference,
        "responses": [{"model": "a", "text": a}, {"model": "b", "text": b}],
    })
}

fn metrics(folder: &Folder, more: &[&str]) -> ProgramOutput {
    folder.run(&[&["metrics", "cases", "--format", "json"], more].concat())
}

/// Returns one metric of one model.
fn metric_of(output: &ProgramOutput, model: &str, metric: &str) -> Value {
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let table: Value = serde_json::from_str(&output.stdout).unwrap();
    let find_by = |list: &Value, name: &str, value: &str| {
        let list = list.as_array().unwrap();
        list.iter().find(|item| item[name] == value).unwrap().clone()
    };
    let model = find_by(&table["models"], "model", model);
    find_by(&model["metrics"], "metric", metric)
}

#[test]
fn uncounted_answers_are_not_zeros() {
    let folder = Folder::empty();
    folder.write_cases(&[
        case("right", Some("the left lung"), ["Left lung.", "right lung"]),
        case("none", None, ["left", "left"]),
        case("blank", Some("  "), ["left", "left"]),
        case("signs", Some("?!..."), ["left", "left"]),
        case("empty", Some("left"), ["left", " "]),
        json!({"id": "broken", "question": 1, "responses": [{"model": "a", "text": "x"}]}),
    ]);
    let output = metrics(&folder, &[]);
    let em = metric_of(&output, "a", "exact_match");
    assert_eq!((&em["value"], &em["n"], &em["of"]), (&json!(1.0), &json!(2), &json!(6)));
    assert_eq!(em["uncounted"]["the case has no reference"], 2);
    assert_eq!(em["uncounted"]["the model has no answer"], 1);
    assert_eq!(em["uncounted"]["the reference has no word that the metric sees"], 1);
    // Bounds of the mean if all uncounted answers were wrong, or right.
    assert_eq!(em["bounds"], json!([2.0 / 6.0, 1.0]));
    let em = metric_of(&output, "b", "exact_match");
    assert_eq!((&em["value"], &em["n"], &em["of"]), (&json!(0.0), &json!(1), &json!(5)));
    assert_eq!(em["uncounted"]["the model has no answer"], 1);
    // BLEU counts one more case, because its tokenization keeps punctuation.
    assert_eq!(metric_of(&output, "a", "bleu1")["n"], 3);
    assert_eq!(metric_of(&output, "a", "corpus_bleu1")["n"], 3);
    let text = folder.run(&["metrics", "cases"]).stdout;
    for part in [
        "a: 5 of 6 answers",
        "2 answers not counted: the case has no reference (every metric)",
        "33 %",
        "higher is better in every metric",
        "0 to 100",
        "tok:13a",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Some published evaluation code counts closed answers twice, so its proportions exceed 100 %.
#[test]
fn values_are_in_range_and_columns_are_unique() {
    let metrics = [&Metric::DEFAULT[..], &[Metric::LlavaMedRecall]].concat();
    for (i, pair) in generate_pairs(2000).iter().enumerate() {
        let scores = score_answer(&metric_answer(i, pair), &metrics, LexicalSettings::default());
        for (name, outcome) in scores.iter() {
            let column = COLUMNS.iter().find(|c| c.name == name && c.corpus_order.is_none());
            let Some(column) = column else {
                assert!(name.starts_with("corpus_") && outcome.value().is_none(), "{name}");
                continue;
            };
            if let MetricOutcome::Value(value) = outcome {
                let [min, max] = column.range;
                assert!((min..=max + 1e-9).contains(&value), "{name} of {pair:?}: {value}");
            }
        }
        let names: Vec<_> = scores.iter().map(|(name, _)| name).collect();
        for column in metrics.iter().flat_map(|metric| metric.columns()) {
            let times = names.iter().filter(|name| **name == column.name).count();
            assert!(times == 1 || column.corpus_order.is_some(), "{} {times} times", column.name);
        }
    }
}

#[test]
fn records_and_cases_give_equal_metrics() {
    let folder = Folder::empty();
    let cases: Vec<Value> = (0..6)
        .map(|i| {
            let mut case =
                case(&format!("c{i}"), Some("a small nodule"), ["a nodule", "no, nothing at all"]);
            let third = json!({"model": "c", "text": format!("small nodule {i}")});
            case["responses"].as_array_mut().unwrap().push(third);
            case
        })
        .collect();
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let of_cases = metrics(&folder, &[]);
    let of_records = folder.run(&["metrics", "out", "--format", "json"]);
    for model in ["a", "b", "c"] {
        for metric in ["exact_match", "f1", "rouge1", "bleu4", "corpus_bleu4"] {
            let [from_cases, from_records] =
                [&of_cases, &of_records].map(|s| metric_of(s, model, metric));
            assert_eq!(from_cases, from_records, "{model} {metric}");
        }
    }
    assert_eq!(metric_of(&of_records, "c", "f1")["n"], 6);
    let rejected = folder.run(&["metrics", "out", "--answers", "x.jsonl"]);
    assert_eq!(rejected.exit_code, 2);
    assert!(rejected.stderr.contains("contain their answers"), "{}", rejected.stderr);
}

#[test]
fn rationales_of_two_judges_are_compared() {
    let folder = Folder::with_cases(4);
    assert_eq!(folder.judge("one", &[]).exit_code, 0);
    let other = ["judge", "cases", "--out", "two", "--panel", "scripted:seed=3"];
    assert_eq!(folder.run(&other).exit_code, 0);
    let against = |other: &str| {
        let args = ["metrics", "one", "--rationales", other, "--format", "json"];
        folder.run(&args)
    };
    let same = metric_of(&against("one"), "expression", "rougeL");
    // 4 criteria × 2 responses × 2 presentation orders × 4 pairs.
    assert_eq!((&same["n"], &same["value"]), (&json!(64), &json!(1.0)));
    let other = metric_of(&against("two"), "conclusion", "exact_match");
    assert_eq!(other["n"], 16);
    assert!(other["value"].as_f64().unwrap() < 1.0);
    let output = folder.run(&["metrics", "one", "--rationales", "cases"]);
    assert!(output.exit_code == 2 && output.stderr.contains(": no records"), "{}", output.stderr);
}

#[test]
fn output_formats_have_equal_values() {
    let folder = Folder::empty();
    folder.write_cases(&[
        case("x", Some("no"), ["No.", "Yes"]),
        case("y", Some("left | lung"), ["left lung", ""]),
    ]);
    let output = folder.run(&["metrics", "cases", "--format", "markdown", "--out", "s.jsonl"]);
    assert!(
        output.stdout.contains("| closed_accuracy | 1.000 [0.207, 1.000] |"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("\n## b: 1 of 2 answers\n"), "{}", output.stdout);
    let scores = folder.read("s.jsonl");
    let lines: Vec<Value> = scores.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[0]["case"], &lines[0]["model"]), (&json!("x"), &json!("a")));
    assert_eq!(lines[0]["scores"]["closed_accuracy"], 1.0);
    assert_eq!(lines[0]["scores"].get("open_recall"), None);
    assert_eq!(lines[2]["scores"]["open_recall"], 1.0);
    assert!(lines[3]["missing"].as_str().unwrap().contains("is empty"), "{}", lines[3]);
    let csv = folder.run(&["metrics", "cases", "--format", "csv", "--metrics", "f1"]).stdout;
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!((&rows[0][0], &rows[0][1], &rows[0][2]), ("a", "f1", "1"));
}

/// Some harnesses silently compute another metric if a model is missing (`VLMEvalKit`,
/// `MMRareBench`). acem3 returns an error.
#[test]
fn missing_metric_model_is_an_error() {
    let folder = Folder::empty();
    folder.write_cases(&[case("x", Some("no"), ["No.", "Yes"])]);
    let golden = |name: &str| text_golden().join(name).display().to_string();
    let (bert, bart) = (golden("bert"), golden("bart"));
    for (args, expected_error) in [
        (vec!["--metrics", "bertscore"], "hint: pass --bert MODEL"),
        (vec!["--metrics", "f1,bartscore"], "hint: pass --bart MODEL"),
        (vec!["--metrics", "bleurt"], "bertscore"),
        (vec!["--bert", &bert], "hint: name one with --bert-layer"),
        (vec!["--bert", &bert, "--bert-layer", "4"], "has 3 layers"),
        (vec!["--bert", &bart, "--bert-layer", "1"], "model_type is bart"),
        (vec!["--bart", &bert], "model_type is bert"),
        (vec!["--bart", "nowhere"], "no such folder"),
        (vec!["--bart", "."], "no config.json in the folder"),
        (vec!["--idf"], "--bert"),
    ] {
        let output = metrics(&folder, &args);
        assert_eq!(output.exit_code, 2, "{args:?}");
        assert!(
            output.stderr.contains(expected_error) && output.stdout.is_empty(),
            "{args:?}: {}",
            output.stderr
        );
    }
    let output = metrics(&folder, &["--bert", &bert, "--bert-layer", "2", "--bart", &bart]);
    assert_eq!(metric_of(&output, "a", "bertscore_f1")["n"], 1);
    assert_eq!(metric_of(&output, "b", "bartscore")["range"], json!([null, 0.0]));
    assert!(output.stdout.contains("layer 2"), "{}", output.stdout);
}

/// The error names a tensor that is missing, unknown or has the wrong shape.
#[test]
fn damaged_metric_checkpoints_are_rejected() {
    let folder = Folder::empty();
    folder.write_cases(&[case("x", Some("no"), ["No.", "Yes"])]);
    let error_after = |kind: &str, change: &dyn Fn(&mut crate::encoders::Tensors)| {
        let (from, to) = (text_golden().join(kind), folder.path("model"));
        fs::create_dir_all(&to).unwrap();
        for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
        let mut weights = load_tensors(&from.join("model.safetensors"));
        change(&mut weights);
        candle::safetensors::save(&weights, to.join("model.safetensors")).unwrap();
        let more: &[&str] = if kind == "bart" {
            &["--bart", "model"]
        } else {
            &["--bert", "model", "--bert-layer", "1"]
        };
        let output = metrics(&folder, more);
        assert_eq!(output.exit_code, 2, "{}", output.stdout);
        output.stderr
    };
    let zeros = |n: usize| Tensor::zeros(n, candle::DType::F32, &Device::Cpu).unwrap();
    let last_layer_bias = "bert.encoder.layer.2.output.dense.bias";
    let missing = error_after("bert", &|weights| {
        weights.remove(last_layer_bias);
    });
    assert!(missing.contains("no tensor `encoder.layer.2.output.dense.bias`"), "{missing}");
    let shape = error_after("bert", &|weights| {
        weights.insert(last_layer_bias.into(), zeros(7));
    });
    assert!(shape.contains("has shape [7]"), "{shape}");
    let unknown = "roberta.encoder.layer.3.output.dense.bias";
    let unknown = error_after("roberta", &|weights| {
        weights.insert(unknown.into(), zeros(24));
    });
    assert!(
        unknown.contains("unused tensor") && unknown.contains("layer.3.output.dense.bias`"),
        "{unknown}"
    );
    let bart = error_after("bart", &|weights| {
        weights.remove("model.shared.weight");
    });
    assert!(bart.contains("no tensor `shared.weight`"), "{bart}");
}

#[test]
fn published_answers_have_plausible_metrics() {
    let (Some(rows), Some(answers)) =
        (public_data("path_vqa"), public_data("answers/path_vqa_validation"))
    else {
        return;
    };
    let path = |path: &Path| path.display().to_string();
    let folder = Folder::empty();
    let output = folder.run(&[
        "metrics",
        &path(&rows),
        "--split",
        "validation",
        "--answers",
        &path(&answers),
        "--metrics",
        "em,closed,open-recall,f1,llava-med-closed",
        "--format",
        "json",
    ]);
    let value = |model, metric| metric_of(&output, model, metric)["value"].as_f64().unwrap();
    let n = |model, metric| metric_of(&output, model, metric)["n"].as_u64().unwrap();
    let (med, tuned) = ("llava-med-v1.5-mistral-7b", "tinyllava-3.1b-finetuned");
    assert_eq!(n(med, "closed_accuracy") + n(med, "open_recall"), 1500);
    assert_eq!(n(tuned, "exact_match"), 1500);
    assert!(value(tuned, "exact_match") > value("vilt", "exact_match"));
    assert!(value(tuned, "closed_accuracy") > value(med, "closed_accuracy"));
    // The published code silently skips most wrong answers.
    assert!(value(med, "llava_med_closed") > 0.95 && value(med, "closed_accuracy") < 0.7);
    assert!(n(med, "llava_med_closed") < n(med, "closed_accuracy"));
}

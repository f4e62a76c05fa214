//! Label Studio: results of a study read as labels, and an export of Label Studio read by `acem3 agree`.

use std::cmp::Ordering;

use acem3::data::labels::{LabelEntry, LabelOptions, LabelValue, read};
use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// An export in the form of Label Studio 1.23, with the labeling configuration of a study.
const EXPORT: &str = include_str!("export.json");

const RATERS: [&str; 3] = ["dr-lee", "ito@clinic.example", "dr-roy"];

/// Returns cases with three, two and one responses; the last has no image.
fn cases() -> Vec<Value> {
    let mut cases: Vec<Value> = (0..8).map(valid_case).collect();
    for (i, case) in cases.iter_mut().enumerate() {
        let models: &[&str] = match i {
            0 | 1 => &["beta", "alpha", "Answer"],
            7 => &["alpha"],
            _ => &["alpha", "beta"],
        };
        let response = |model: &&str| json!({"model": model, "text": format!("{model} \"{i}\"")});
        case["responses"] = models.iter().map(response).collect();
    }
    for case in &mut cases {
        case.as_object_mut().unwrap().remove("labels");
    }
    cases[7].as_object_mut().unwrap().remove("image");
    cases
}

/// Returns a journal in which the raters submit, skip and save tasks.
fn journal(cases: &[Value]) -> String {
    let mut lines = Vec::new();
    for (r, rater) in RATERS.iter().enumerate() {
        for (c, case) in cases.iter().enumerate() {
            let responses = case["responses"].as_array().unwrap();
            let models: Vec<&Value> = responses.iter().map(|response| &response["model"]).collect();
            let pairs: Vec<Vec<&Value>> = if models.len() == 1 {
                vec![models.clone()]
            } else {
                let second = |i: usize| models[i + 1..].iter().map(move |m| (i, *m));
                let all = (0..models.len()).flat_map(second);
                all.map(|(i, other)| vec![models[i], other]).collect()
            };
            for (p, pair) in pairs.iter().enumerate() {
                let score = |key: usize| -> Vec<usize> {
                    (0..pair.len()).map(|i| (r * 2 + c + p * 3 + i + key) % 6).collect()
                };
                let preference = ["first", "equal", "second"][(r + c + p) % 3];
                let preference = (pair.len() == 2).then_some(preference);
                let action = match (r + c) % 6 {
                    4 => "skip",
                    5 => "save",
                    _ => "submit",
                };
                let mut answers = json!({
                    "scores": {"final": score(0), "factual_accuracy": score(1)},
                    "comment": "x,\n\"y\"",
                });
                if let Some(preference) = preference {
                    answers["preference"] = json!(preference);
                }
                let entry = json!({
                    "schema": 1, "time": "2026-01-02T03:04:05Z", "rater": rater, "case": case["id"],
                    "models": pair, "swapped": r == 1, "action": action, "answers": answers, "seconds": 2.5,
                });
                lines.push(entry.to_string());
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Returns labels as sorted texts, with the models of a preference in alphabetic order.
fn normalized(entries: &[LabelEntry]) -> Vec<String> {
    let text = |entry: &LabelEntry| {
        let rated = match &entry.value {
            LabelValue::Score { model, value } => format!("{model} {value}"),
            LabelValue::Preference { models, vote } => {
                let [a, b] = models.as_ref().unwrap();
                let order = vote.order([a, b]).unwrap();
                let (models, order) =
                    if a < b { ([a, b], order) } else { ([b, a], Ordering::reverse(order)) };
                format!("{models:?} {order:?}")
            }
        };
        format!("{} {} {} {rated}", entry.case, entry.rater, entry.target.key())
    };
    let mut texts: Vec<String> = entries.iter().map(text).collect();
    texts.sort();
    texts
}

#[test]
fn results_for_label_studio_are_the_labels_of_the_tables() {
    let folder = Folder::with_cases(8);
    let cases = cases();
    folder.write_cases(&cases);
    folder.write("study.toml", &format!("name = \"s\"\nseed = 3\nraters = {RATERS:?}\n"));
    let args = ["annotate", "cases", "--study", "study.toml", "--out", "out", "--results"];
    assert_eq!(folder.run(&args).exit_code, 0);
    folder.write("out/ratings.jsonl", &journal(&cases));
    let written = folder.run(&args);
    assert_eq!(written.exit_code, 0, "{}", written.stderr);
    let labels = |name: &str| {
        read(&folder.path("out").join(name), &LabelOptions::default()).unwrap().entries
    };
    let tables = [labels("scores.csv"), labels("preferences.csv")].concat();
    let exported = labels("label_studio.json");
    assert!(tables.len() > 100, "{}", tables.len());
    assert_eq!(normalized(&exported), normalized(&tables));
    let text = std::fs::read_to_string(folder.path("out/label_studio.json")).unwrap();
    let tasks: Vec<Value> = serde_json::from_str(&text).unwrap();
    // Two cases with three pairs, five with one, and one with a single response.
    assert_eq!(tasks.len(), 2 * 3 + 5 + 1);
    let cancelled = tasks.iter().flat_map(|task| task["annotations"].as_array().unwrap());
    assert!(cancelled.filter(|annotation| annotation["was_cancelled"] == true).count() > 0);
    let swapped = tasks.iter().filter(|task| task["meta"]["models"] == json!(["beta", "alpha"]));
    assert!((1..7).contains(&swapped.count()));
    // Raters see `data`, which must not name a model.
    for task in &tasks {
        let names: Vec<&String> = task["data"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["image", "question", "response_a", "response_b"]);
    }
    let config = std::fs::read_to_string(folder.path("out/label_studio.xml")).unwrap();
    for annotation in tasks.iter().flat_map(|task| task["annotations"].as_array().unwrap()) {
        for result in annotation["result"].as_array().unwrap() {
            let control =
                |name: &str| format!("name={} toName={}", result[name], result["to_name"]);
            assert!(config.contains(&control("from_name")), "{result}");
        }
    }
    for field in ["image", "question", "response_a", "response_b"] {
        assert!(config.contains(&format!("name=\"{field}\" value=\"${field}\"")), "{field}");
    }
}

#[test]
fn an_export_of_label_studio_is_read_as_labels() {
    let folder = Folder::with_cases(2);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    // As Label Studio writes it: on one line. The name of the file does not matter.
    let value: Value = serde_json::from_str(EXPORT).unwrap();
    folder.write("ratings.csv", &value.to_string());
    let args = ["agree", "out", "--labels", "ratings.csv", "--resamples", "50", "--format", "json"];
    let agreed = folder.run(&args);
    assert_eq!(agreed.exit_code, 0, "{}", agreed.stderr);
    assert!(agreed.stderr.contains("ignored controls: finding (rectanglelabels)"));
    let agreement: Value = serde_json::from_str(&agreed.stdout).unwrap();
    assert_eq!((&agreement["joined"], &agreement["unmatched"]), (&json!(6), &json!(0)));
    assert_eq!(agreement["raters"], json!(["2", "ito@clinic.example"]));
    folder.write("pretty.json", EXPORT);
    let entries = read(&folder.path("pretty.json"), &LabelOptions::default()).unwrap().entries;
    let expected = [
        "c0 2 final [\"alpha\", \"beta\"] Less",
        "c0 2 final alpha 0",
        "c0 2 final beta 4",
        "c0 ito@clinic.example final [\"alpha\", \"beta\"] Equal",
        "c0 ito@clinic.example final alpha 2",
        "c0 ito@clinic.example final beta 3",
    ];
    assert_eq!(normalized(&entries), expected);
    assert!(entries.iter().all(|entry| entry.line == 2));
}

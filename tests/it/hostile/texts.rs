//! Texts and lines that are too long.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::measured_run;
use crate::folder::Folder;

fn case(id: &str, text: &str) -> Value {
    let responses = json!([
        {"model": "a", "text": text},
        {"model": "b", "text": "nothing"},
        {"model": "c", "text": "a cyst"},
    ]);
    json!({"id": id, "question": "what is shown?", "responses": responses})
}

/// Judges cases with the embedded panel and returns the messages by pair.
fn judge(lines: &str) -> Vec<Value> {
    let folder = Folder::empty();
    folder.write("cases/cases.jsonl", lines);
    let cases = lines.lines().count() as u64;
    let output = measured_run::run(&folder, &["judge", "cases", "--out", "run"], cases);
    assert!(output.exit_code >= 0, "{}", output.stderr);
    folder.records("run")
}

#[test]
fn long_response_affects_only_its_pairs() {
    let lines = [
        case("words", &"word ".repeat(1_400_000)).to_string(),
        case("letters", &"a".repeat(300_000)).to_string(),
        case("short", "a fracture").to_string(),
    ];
    let records = judge(&lines.join("\n"));
    assert_eq!(records.len(), 9);
    let status = |i: usize| records[i]["status"].as_str().unwrap();
    let statuses: Vec<&str> = (0..9).map(status).collect();
    let expected = ["unscored", "unscored", "judged"].repeat(2);
    assert_eq!(statuses[..6], expected, "{records:?}");
    assert_eq!(statuses[6..], ["judged"; 3]);
    let message = records[0]["message"].as_str().unwrap();
    assert!(message.contains("response 1 (model a) has 7000000 bytes, the limit is 262144"));
    let largest = records.iter().map(|record| record.to_string().len()).max().unwrap();
    assert!(largest < 20_000, "{largest}");
}

/// Ten lines of 6 MB that take 100 MB each when parsed. None may wait in memory for another, and no
/// record repeats them.
#[test]
fn large_fields_are_held_one_case_at_a_time() {
    let numbers = Value::Array(vec![json!(0); 3_000_000]);
    let lines: Vec<String> = (0..10)
        .map(|i| {
            let mut case = case(&i.to_string(), "a fracture");
            case["meta"] = json!({"x": numbers});
            case.to_string()
        })
        .collect();
    let records = judge(&lines.join("\n"));
    let count = |status: &str| records.iter().filter(|r| r["status"] == status).count();
    assert_eq!((count("judged"), count("noted")), (30, 10));
    assert!(records.iter().all(|record| record.to_string().len() < 20_000));
}

/// A field of 200 kB would be in each of 7,140 records.
#[test]
fn fields_are_not_repeated_in_many_records() {
    let response = |i| json!({"model": format!("m{i}"), "text": "a cyst"});
    let responses: Vec<Value> = (0..120).map(response).collect();
    let lines = ["reference", "meta", "other"].map(|field| {
        let text = "a".repeat(200_000);
        let value = if field == "meta" { json!({"x": text}) } else { json!(text) };
        let image = "missing.png";
        json!({"id": field, "image": image, "question": "what?", "responses": responses, field: value})
            .to_string()
    });
    let folder = Folder::empty();
    folder.write("cases/cases.jsonl", &lines.join("\n"));
    let args = ["judge", "cases", "--out", "run", "--panel", "scripted:"];
    measured_run::run(&folder, &args, 3);
    let records = folder.records("run");
    assert_eq!(records.len(), 3 * (7140 + 1));
    let noted = records[0]["message"].as_str().unwrap();
    assert!(noted.contains("in each of up to 7140 records"), "{noted}");
    assert!(fs::metadata(folder.path("run/records.jsonl")).unwrap().len() < 32 << 20);
}

/// Fifty thousand responses would have more than a billion pairs.
#[test]
fn case_with_too_many_responses_is_unscored() {
    let response = |i| json!({"model": format!("m{i}"), "text": "a"});
    let case = |id: &str, n: usize| {
        let responses: Vec<Value> = (0..n).map(response).collect();
        json!({"id": id, "question": "what?", "responses": responses}).to_string()
    };
    let lines = [case("many", 50_000), case("pairs", 3_000), case("good", 2)];
    let folder = Folder::empty();
    folder.write("cases/cases.jsonl", &lines.join("\n"));
    let args = ["judge", "cases", "--out", "run", "--panel", "scripted:"];
    measured_run::run(&folder, &args, 3);
    let records = folder.records("run");
    assert_eq!(records.len(), 3);
    let message = |i: usize| records[i]["message"].as_str().unwrap_or_default();
    assert!(message(0).contains("50000 responses, the limit is 4096"), "{}", message(0));
    assert!(message(1).contains("4498500 pairs, the limit is 1000000"), "{}", message(1));
    assert_eq!(records[2]["status"], "judged");
}

#[test]
fn answers_of_too_many_models_are_an_error() {
    let folder = Folder::with_cases(2);
    let line = |i| json!({"question_id": "c0", "text": "yes", "model_id": format!("m{i}")});
    let lines: Vec<String> = (0..80_000).map(|i| line(i).to_string()).collect();
    folder.write("answers.jsonl", &lines.join("\n"));
    let args = ["data", "check", "cases", "--answers", "answers.jsonl"];
    let output = measured_run::run(&folder, &args, 1);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("more than 4096 models\nhint: "), "{}", output.stderr);
}

#[test]
fn long_names_and_lines_are_rejected() {
    let mut array = String::from(r#"{"id": "array", "question": "q", "x": [0"#);
    array.push_str(&",0".repeat(4_000_000));
    array.push_str("]}");
    let mut object = String::from(r#"{"id": "object", "question": "q", "x": {"0": 0"#);
    for i in 1..600_000 {
        write!(object, r#","{i}":0"#).unwrap();
    }
    object.push_str("}}");
    let nested =
        format!(r#"{{"id": "nested", "x": {}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let long_model = json!({
        "id": "model", "question": "q",
        "responses": [{"model": "m".repeat(5000), "text": "x"}, {"model": "b", "text": "y"}],
    });
    let long_line = format!(r#"{{"id": "line", "question": "{}"}}"#, "x".repeat(9 << 20));
    let lines = [
        array,
        object,
        nested,
        long_model.to_string(),
        case(&"i".repeat(5000), "yes").to_string(),
        long_line,
        case("good", "yes").to_string(),
    ];
    let records = judge(&lines.join("\n"));
    let message = |part: &str| {
        let found = records.iter().filter_map(|r| r["message"].as_str()).find(|m| m.contains(part));
        assert!(found.is_some(), "{part}: {records:?}");
    };
    message("the model of response 1 has 5000 bytes, the limit is 4096");
    message("the id has 5000 bytes, the limit is 4096");
    message("the line is longer than 8388608 bytes");
    message("malformed JSON");
    assert!(records.iter().any(|record| record["case"] == "good" && record["status"] == "judged"));
}

/// Each of these responses has fewer bytes than the limit, but more tokens than the context. A pair
/// must not cost the time of tokenising them and a record of their length.
#[test]
fn responses_beyond_the_context_are_tokenised_once() {
    const LONG: usize = 30;
    let long = "shadow of a small nodule ".repeat(8_000);
    let mut responses: Vec<Value> =
        (0..LONG).map(|i| json!({"model": format!("m{i}"), "text": long})).collect();
    responses.extend(["nothing", "a cyst"].map(|text| json!({"model": text, "text": text})));
    let case = json!({"id": "c", "question": "what is shown?", "responses": responses});
    let records = judge(&case.to_string());
    let judged = records.iter().filter(|record| record["status"] == "judged").count();
    assert_eq!(judged, 1);
    let size: usize = records.iter().map(|record| record.to_string().len()).sum();
    assert!(size < 200_000, "{size}");
    let message = records[0]["message"].as_str().unwrap();
    assert!(message.starts_with("response 1 (model m0) is too long: it has "), "{message}");
    assert!(message.contains("more than the context of "), "{message}");
}

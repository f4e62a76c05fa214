//! Responses and questions that no prompt of the judge can hold.

use serde_json::{Value, json};

use crate::folder::Folder;

/// The scripted judge has no prompt that can hold this text.
const LONG: &str = "[[never fits]]";

/// Writes a case with a response per text, of the models `m0`, `m1`, …
fn folder_with_texts(question: &str, texts: &[&str]) -> Folder {
    let folder = Folder::empty();
    let response = |(i, text): (usize, &&str)| json!({"model": format!("m{i}"), "text": text});
    let responses: Vec<Value> = texts.iter().enumerate().map(response).collect();
    let scores: Vec<usize> = (0..texts.len()).collect();
    folder.write_cases(&[json!({
        "id": "c",
        "question": question,
        "responses": responses,
        "labels": {"final": scores},
        "meta": {"organ": "lung"},
    })]);
    folder
}

/// Returns the pair of each record and whether it has a verdict.
fn pairs(records: &[Value]) -> Vec<(String, bool)> {
    let pair = |record: &Value| {
        let names = record["pair"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        (names.collect::<Vec<_>>().join(" "), record["status"] == "judged")
    };
    records.iter().map(pair).collect()
}

#[test]
fn long_response_leaves_the_pairs_of_the_others() {
    let folder = folder_with_texts("what?", &["a shadow", LONG, "nothing", "a cyst"]);
    let output = folder.judge("out", &["--max-unscored", "100"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let records = folder.records("out");
    let expected = [
        ("m0 m1", false),
        ("m1 m2", false),
        ("m1 m3", false),
        ("m0 m2", true),
        ("m0 m3", true),
        ("m2 m3", true),
    ];
    assert_eq!(pairs(&records), expected.map(|(pair, judged)| (pair.to_owned(), judged)));
    let record = &records[0];
    assert_eq!(
        (&record["reason"], &record["question"], &record["meta"]["organ"]),
        (&json!("truncated"), &json!("what?"), &json!("lung"))
    );
    let message = record["message"].as_str().unwrap();
    assert!(message.starts_with("response 2 (model m1) is too long: "), "{message}");
    assert!(record.get("responses").is_none_or(Value::is_null), "{record}");
    assert_eq!(records[4]["labels"]["final"], json!([0.0, 3.0]));
    let counts = folder.manifest("out")["counts"].clone();
    assert_eq!((&counts["cases"], &counts["left_out"]), (&json!(1), &json!(1)));
    // A second run changes nothing.
    let before = folder.read("out/records.jsonl");
    let second_run = folder.judge("out", &["--max-unscored", "100"]);
    assert!(second_run.stderr.contains("0 new verdicts in"), "{}", second_run.stderr);
    assert_eq!(folder.read("out/records.jsonl"), before);
}

#[test]
fn case_without_a_remaining_pair_is_complete() {
    for (texts, baseline, expected) in [
        (&[LONG, "nothing"][..], None, &["m0 m1"][..]),
        (&[LONG, LONG, LONG], None, &["m0 m1", "m0 m2", "m1 m2"]),
        (&["a shadow", LONG, "nothing"], Some("m1"), &["m0 m1", "m2 m1"]),
    ] {
        let folder = folder_with_texts("what?", texts);
        let mut args = vec!["--max-unscored", "100"];
        args.extend(baseline.iter().flat_map(|name| ["--baseline", name]));
        let output = folder.judge("out", &args);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let records = folder.records("out");
        let expected: Vec<_> = expected.iter().map(|pair| ((*pair).to_owned(), false)).collect();
        let mut found = pairs(&records);
        found.sort();
        assert_eq!(found, expected, "{texts:?}");
        assert!(records.iter().all(|record| record["reason"] == "truncated"), "{records:?}");
        assert_eq!(folder.manifest("out")["counts"]["cases"], 1, "{texts:?}");
    }
}

#[test]
fn long_question_affects_all_pairs() {
    let folder = folder_with_texts(LONG, &["a shadow", "nothing", "a cyst"]);
    assert_eq!(folder.judge("out", &["--max-unscored", "100"]).exit_code, 0);
    let records = folder.records("out");
    let expected = ["m0 m1", "m0 m2", "m1 m2"].map(|pair| (pair.to_owned(), false));
    assert_eq!(pairs(&records), expected);
    let message = records[0]["message"].as_str().unwrap();
    assert!(message.starts_with("the question is too long: "), "{message}");
}

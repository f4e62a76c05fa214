//! Cases with many responses of which most are empty: records in proportion to the work.

use serde_json::{Value, json};

use crate::folder::Folder;

/// Writes one case with `n` responses, of which those with a text are given by index.
fn folder_with_responses(n: usize, texts: &[(usize, &str)]) -> Folder {
    let folder = Folder::empty();
    let response = |i: usize| {
        let text = texts.iter().find(|(index, _)| *index == i).map_or("", |(_, text)| text);
        json!({"model": format!("m{i:04}"), "text": text})
    };
    let responses: Vec<Value> = (0..n).map(response).collect();
    folder.write_cases(&[json!({"id": "c", "question": "what?", "responses": responses})]);
    folder
}

#[test]
fn empty_responses_have_one_record_each() {
    const RESPONSES: usize = 600;
    let texts = [(7, "a shadow"), (400, "nothing")];
    let folder = folder_with_responses(RESPONSES, &texts);
    let output = folder.judge("out", &["--max-unscored", "100"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let records = folder.records("out");
    assert_eq!(records.len(), RESPONSES - 2 + 2);
    assert!(folder.read("out/records.jsonl").len() < 500 * RESPONSES);
    // The verdict is that on the two responses alone.
    let alone = Folder::empty();
    let responses = texts.map(|(i, text)| json!({"model": format!("m{i:04}"), "text": text}));
    alone.write_cases(&[json!({"id": "c", "question": "what?", "responses": responses})]);
    assert_eq!(alone.judge("out", &[]).exit_code, 0);
    assert_eq!(records.last(), alone.records("out").last());
    // Each empty response has its explanation.
    for i in (0..RESPONSES).filter(|i| texts.iter().all(|(index, _)| index != i)) {
        let expected = format!("response {} (model m{i:04}) is empty", i + 1);
        let mut messages = records.iter().filter(|r| r["models"] == json!([format!("m{i:04}")]));
        let record = messages.next().unwrap();
        assert!(record["message"].as_str().unwrap().starts_with(&expected), "{record}");
        assert_eq!(record["unlisted_pairs"], RESPONSES - 1);
    }
    // The summary and the ranking count the pairs without a record.
    let pairs = RESPONSES * (RESPONSES - 1) / 2 - 1;
    let counts = folder.manifest("out")["counts"].clone();
    assert_eq!((&counts["judged"], &counts["unlisted_pairs"]), (&json!(1), &json!(pairs)));
    let expected = format!("; {pairs} more pairs have no record of their own");
    assert!(output.stdout.contains(&expected), "{}", output.stdout);
    let rank = folder.run(&["rank", "out", "--resamples", "20", "--format", "json"]);
    assert_eq!((rank.exit_code, rank.stderr.as_str()), (0, ""));
    let ranking: Value = serde_json::from_str(&rank.stdout).unwrap();
    let coverage = ranking["models"][0]["coverage"].as_f64().unwrap();
    assert!((coverage - 1.0 / (RESPONSES as f64 - 1.0)).abs() < 1e-12, "{coverage}");
}

#[test]
fn case_without_two_responses_has_one_record() {
    let folder = folder_with_responses(300, &[(5, "a shadow")]);
    assert_eq!(folder.judge("out", &[]).exit_code, 2);
    let records = folder.records("out");
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["models"].as_array().unwrap().len(), 300);
    assert_eq!(records[0]["unlisted_pairs"], 299);
    let message = records[0]["message"].as_str().unwrap();
    assert!(message.contains("response 1 (model m0000) is empty"), "{message}");
    assert!(message.ends_with("and 279 more responses are missing"), "{message}");
}

#[test]
fn few_empty_responses_have_one_record_per_pair() {
    let folder = folder_with_responses(4, &[(0, "a shadow"), (2, "nothing")]);
    assert_eq!(folder.judge("out", &["--max-unscored", "100"]).exit_code, 0);
    let records = folder.records("out");
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record["pair"].is_array()), "{records:?}");
    assert!(records.iter().all(|record| record.get("unlisted_pairs").is_none()));
}

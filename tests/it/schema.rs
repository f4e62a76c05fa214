//! JSON Schemas of cases and records compared with the input and output of the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// A compiled schema.
struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn load(name: &str) -> Self {
        let schema =
            serde_json::from_str(&fs::read_to_string(committed_schema(name)).unwrap()).unwrap();
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.add_resource("schema.json", schema).unwrap();
        let index = compiler.compile("schema.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn accepts(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }

    fn assert_accepts(&self, value: &Value) {
        if let Err(error) = self.schemas.validate(value, self.index) {
            panic!("{error:#}\n{value}");
        }
    }
}

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(name)
}

fn committed_schema(name: &str) -> PathBuf {
    asset("schema").join(name).with_extension("json")
}

fn parse_lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn committed_schemas_equal_generated_ones() {
    let folder = Folder::empty();
    for name in ["cases", "records"] {
        let printed = folder.run(&["data", "schema", name]);
        assert_eq!(printed.exit_code, 0, "{}", printed.stderr);
        assert_eq!(
            fs::read_to_string(committed_schema(name)).unwrap_or_default(),
            printed.stdout,
            "run `acem3 data schema {name} > assets/schema/{name}.json`"
        );
    }
}

#[test]
fn demo_cases_fit_the_schema() {
    let schema = Validator::load("cases");
    let text = fs::read_to_string(asset("demo/cases.jsonl")).unwrap();
    assert_eq!(parse_lines(&text).count(), 12);
    parse_lines(&text).for_each(|case| schema.assert_accepts(&case));
}

#[test]
fn demo_records_fit_the_schema() {
    let folder = Folder::empty();
    let demo = asset("demo").display().to_string();
    for (out, flags) in
        [("full", ["--limit", "2"]), ("scores", ["--scores-only", "--single-order"])]
    {
        let judged = folder.run(&[&["judge", &demo, "--out", out], &flags[..]].concat());
        assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    }
    let schema = Validator::load("records");
    let records = [folder.records("full"), folder.records("scores")].concat();
    assert_eq!(records.len(), 14);
    for record in &records {
        schema.assert_accepts(record);
    }
}

#[test]
fn unscored_and_noted_records_fit_the_schema() {
    let folder = Folder::with_cases(4);
    let dicom = folder.path("cases/images/ct.dcm");
    fs::copy(asset("golden/dicom/ct.dcm"), dicom).unwrap();
    let altered = |i: usize, field: &str, value: Value| {
        let mut case = valid_case(i);
        case[field] = value;
        case.to_string()
    };
    let cases = [
        valid_case(0).to_string(),
        altered(1, "image", json!("images/absent.png")),
        altered(2, "image", json!("images/ct.dcm")),
        altered(3, "image", Value::Null),
        altered(4, "labels", json!({"final": [9, 1]})),
        altered(5, "responses", json!([{"model": "a", "text": "x"}, {"model": "b", "text": ""}])),
        altered(6, "question", json!(1)),
        "{\"id\": \"torn".to_owned(),
    ];
    folder.write("cases/cases.jsonl", &(cases.join("\n") + "\n"));
    folder.judge("out", &[]);
    let schema = Validator::load("records");
    let records = folder.records("out");
    for record in &records {
        schema.assert_accepts(record);
    }
    let statuses: BTreeSet<&str> = records.iter().filter_map(|r| r["status"].as_str()).collect();
    assert_eq!(statuses, BTreeSet::from(["judged", "noted", "unscored"]));
    assert!(records.iter().any(|record| record["image"]["view"].is_object()));
    assert!(records.iter().any(|record| record["case"].is_null()));
}

#[test]
fn malformed_records_do_not_fit_the_schema() {
    let folder = Folder::with_cases(1);
    folder.judge("out", &[]);
    let schema = Validator::load("records");
    let record = &folder.records("out")[0];
    schema.assert_accepts(record);
    for (pointer, value) in [
        ("/status", json!("lost")),
        ("/order", json!("better")),
        ("/scores", json!([])),
        ("/scores/0", json!(5.5)),
        ("/pair", json!(["alpha", "beta", "gamma"])),
        ("/key", json!("short")),
        ("/criteria/clarity_of_response", json!("high")),
        ("/orders/0/conclusion/scores/1", json!(6)),
    ] {
        let mut changed = record.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(!schema.accepts(&changed), "{pointer}");
    }
    for field in ["schema", "case", "pair", "line", "judge", "status", "scores", "orders"] {
        let mut changed = record.clone();
        changed.as_object_mut().unwrap().remove(field);
        assert!(!schema.accepts(&changed), "{field}");
    }
    let mut changed = record.clone();
    changed["criteria"]["beauty"] = json!([1.0, 2.0]);
    assert!(!schema.accepts(&changed), "unknown criterion");
}

/// A case fits the schema if and only if `acem3 data check` accepts it.
#[test]
fn case_schema_agrees_with_reader() {
    let schema = Validator::load("cases");
    let valid = json!({"id": "c", "question": "Is it?", "responses": [
        {"model": "a", "text": "yes"}, {"model": "b", "text": "no"}]});
    let with = |field: &str, value: Value| {
        let mut case = valid.clone();
        case[field] = value;
        case
    };
    let without = |field: &str| {
        let mut case = valid.clone();
        case.as_object_mut().unwrap().remove(field);
        case
    };
    let responses = |second: Value| with("responses", json!([{"model": "a", "text": "x"}, second]));
    let labels = |labels: Value| with("labels", labels);
    let cases = [
        (true, valid.clone()),
        (true, with("id", json!(7))),
        (true, with("id", json!("ä b"))),
        (true, with("image", Value::Null)),
        (true, with("reference", Value::Null)),
        (true, with("reference", json!(""))),
        (true, with("labels", Value::Null)),
        (true, with("meta", Value::Null)),
        (true, with("meta", json!({"organ": ["lung", 1]}))),
        (true, with("other", json!([1]))),
        (true, labels(json!({"final": [0, 5], "criteria": {"factual_accuracy": [1.5, 2]}}))),
        (true, labels(json!({"final": null, "aspects": {"expression": [1, 1]}}))),
        (true, responses(json!({"model": "b", "text": "y", "tokens": 3}))),
        (false, json!([1])),
        (false, without("id")),
        (false, without("question")),
        (false, with("id", json!(" "))),
        (false, with("id", json!([1]))),
        (false, with("id", Value::Null)),
        (false, with("question", json!(1))),
        (false, with("question", json!("\t"))),
        (false, with("image", json!(" "))),
        (false, with("image", json!(1))),
        (false, with("reference", json!(1))),
        (false, with("responses", json!("r"))),
        (false, with("responses", json!(["r"]))),
        (false, with("meta", json!(1))),
        (false, responses(json!({"text": "y"}))),
        (false, responses(json!({"model": " ", "text": "y"}))),
        (false, responses(json!({"model": "b"}))),
        (false, responses(json!({"model": "b", "text": 4}))),
        (false, responses(json!({"model": "b", "text": "\n"}))),
        (false, labels(json!([1, 2]))),
        (false, labels(json!({"finale": [1, 2]}))),
        (false, labels(json!({"final": [1, 6]}))),
        (false, labels(json!({"final": 3}))),
        (false, labels(json!({"aspects": null}))),
        (false, labels(json!({"aspects": {"charm": [1, 2]}}))),
        (false, labels(json!({"criteria": {"factual_accuracy": [1, -1]}}))),
    ];
    let folder = Folder::empty();
    for (fits, case) in cases {
        assert_eq!(schema.accepts(&case), fits, "schema: {case}");
        folder.write("cases/cases.jsonl", &format!("{case}\n"));
        let checked = folder.run(&["data", "check", "cases"]);
        assert_eq!(checked.exit_code == 0, fits, "reader: {case}\n{}", checked.stdout);
    }
}

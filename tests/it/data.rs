//! `acem3 data`: phantoms and case checks.

use serde_json::Value;

use crate::folder::{Folder, valid_case};

#[test]
fn phantoms_can_be_judged() {
    let folder = Folder::empty();
    let output = folder.run(&["data", "phantoms", "--out", "toy", "--count", "3", "--seed", "9"]);
    assert_eq!(
        (output.exit_code, output.stdout.as_str()),
        (0, "3 cases in toy\n"),
        "{}",
        output.stderr
    );
    let output = folder.run(&["judge", "toy", "--out", "out", "--panel", "scripted:"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(folder.records("out").iter().all(|record| record["labels"]["final"].is_array()));
}

#[test]
fn preference_folder_is_not_read_as_cases() {
    let folder = Folder::empty();
    let generated = folder.run(&["data", "preferences", "--out", "pref", "--count", "2"]);
    assert_eq!(generated.exit_code, 0, "{}", generated.stderr);
    let output = folder.run(&["data", "check", "pref"]);
    assert_eq!(output.exit_code, 2);
    assert!(
        output.stderr.contains("preferences.jsonl contains preference pairs"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains("pass the file"), "{}", output.stderr);
}

#[test]
fn check_fails_without_cases() {
    let folder = Folder::empty();
    folder.write("empty.jsonl", "");
    let output = folder.run(&["data", "check", "empty.jsonl"]);
    assert_eq!(output.exit_code, 1, "{}", output.stdout);
    let expected = "error: empty.jsonl: contains no cases\nhint: ";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn check_lists_every_problem_with_its_line() {
    let folder = Folder::with_cases(4);
    let output = folder.run(&["data", "check", "cases"]);
    let all = "4 readable cases with 4 images and 8 responses; 0 problems\n";
    assert_eq!((output.exit_code, output.stdout.as_str()), (0, all), "{}", output.stderr);

    let mut lines: Vec<String> = (0..4).map(|i| valid_case(i).to_string()).collect();
    lines[0] = "{".to_owned();
    lines[2] = lines[2].replace("images/1.png", "images/none.png");
    folder.write("cases/cases.jsonl", &lines.join("\n"));
    let output = folder.run(&["data", "check", "cases"]);
    assert_eq!(output.exit_code, 1);
    assert!(output.stdout.starts_with("cases.jsonl:1: parse: "), "{}", output.stdout);
    let image = "\ncases.jsonl:3: case c2: image: images/none.png: no such file\n";
    assert!(output.stdout.contains(image), "{}", output.stdout);
    assert!(output.stdout.ends_with("; 2 problems\n"), "{}", output.stdout);

    let output = folder.run(&["data", "check", "cases", "--format", "json"]);
    let values: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values[1]["reason"], "image");
    assert_eq!(values[2]["problems"], 2);
}

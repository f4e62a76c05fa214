//! `acem3 data`: phantoms and the check of cases.

use serde_json::Value;

use crate::folder::{Folder, case};

#[test]
fn phantoms_can_be_judged() {
    let folder = Folder::empty();
    let said = folder.run(&[
        "data", "phantoms", "--out", "toy", "--count", "3", "--seed", "9",
    ]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "3 cases in toy\n"),
        "{}",
        said.err
    );
    let said = folder.run(&["judge", "toy", "--out", "out", "--panel", "scripted:"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        folder
            .records("out")
            .iter()
            .all(|record| record["labels"]["final"].is_array())
    );
}

#[test]
fn preferences_are_not_taken_for_cases() {
    let folder = Folder::empty();
    let made = folder.run(&["data", "preferences", "--out", "pref", "--count", "2"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let said = folder.run(&["data", "check", "pref"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("preferences.jsonl holds preferences"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("give that file"), "{}", said.err);
}

#[test]
fn check_lists_every_problem_with_its_line() {
    let folder = Folder::of(4);
    let said = folder.run(&["data", "check", "cases"]);
    let all = "4 readable cases with 4 images and 8 responses; 0 problems\n";
    assert_eq!((said.code, said.out.as_str()), (0, all), "{}", said.err);

    let mut lines: Vec<String> = (0..4).map(|i| case(i).to_string()).collect();
    lines[0] = "{".to_owned();
    lines[2] = lines[2].replace("images/1.png", "images/none.png");
    folder.write("cases/cases.jsonl", &lines.join("\n"));
    let said = folder.run(&["data", "check", "cases"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out.starts_with("cases.jsonl:1: parse: "),
        "{}",
        said.out
    );
    let image = "\ncases.jsonl:3: case c2: image: images/none.png: no such file\n";
    assert!(said.out.contains(image), "{}", said.out);
    assert!(said.out.ends_with("; 2 problems\n"), "{}", said.out);

    let said = folder.run(&["data", "check", "cases", "--format", "json"]);
    let values: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(values[1]["reason"], "image");
    assert_eq!(values[2]["problems"], 2);
}

//! Unfinished runs: every command that reads one says so before its results.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// Number of cases.
const CASES: usize = 24;
/// Number of cases that are judged before the judge fails.
const JUDGED: usize = 15;
const NOTICE: &str = "out: the run is unfinished: 15 of 24 cases are judged; \
                      run the same `acem3 judge` command again to judge the rest";

/// The commands that draw conclusions from a run.
fn commands() -> Vec<Vec<&'static str>> {
    vec![
        vec!["rank", "out", "--resamples", "50"],
        vec!["agree", "out", "--resamples", "50"],
        vec!["agree", "complete", "--against", "out", "--resamples", "50"],
        vec!["audit", "out", "--resamples", "50"],
        vec!["calibrate", "fit", "out", "--resamples", "50"],
        vec!["metrics", "out"],
        vec!["report", "out", "--resamples", "50"],
    ]
}

/// Creates a folder with a run that failed after 15 of 24 cases, and a complete one.
fn unfinished_folder() -> Folder {
    let folder = Folder::with_cases(CASES);
    let case = |i: usize| {
        let mut case = valid_case(i);
        case["reference"] = json!("a shadow");
        case["labels"] = json!({"final": [i % 6, (i + 3) % 6]});
        case
    };
    folder.write_cases(&(0..CASES).map(case).collect::<Vec<_>>());
    assert_eq!(folder.judge("complete", &[]).exit_code, 0);
    let fails = format!("scripted:fail-after={JUDGED}");
    let args = ["judge", "cases", "--out", "out", "--batch-size", "2", "--panel", &fails];
    assert_eq!(folder.run(&args).exit_code, 4);
    folder
}

#[test]
fn unfinished_run_is_told_before_the_results() {
    let folder = unfinished_folder();
    for command in commands() {
        let markdown = folder.run(&[&command[..], &["--format", "markdown"]].concat());
        assert_eq!(markdown.exit_code, 0, "{command:?}: {}", markdown.stderr);
        let start = markdown.stdout.trim_start_matches("# Judge report\n").trim_start();
        let start = start.trim_start_matches("## Before you read the results\n").trim_start();
        assert!(start.starts_with(NOTICE), "{command:?}: {}", markdown.stdout);
        let json = folder.run(&[&command[..], &["--format", "json"]].concat());
        assert_eq!(json.exit_code, 0, "{command:?}: {}", json.stderr);
        assert!(json.stderr.contains(NOTICE), "{command:?}: {}", json.stderr);
        let result: Value = serde_json::from_str(&json.stdout).unwrap();
        let run = match command[0] {
            "report" => &result["judges"][0]["run"],
            _ => result["runs"].as_array().unwrap().last().unwrap(),
        };
        assert_eq!(run["complete"], false, "{command:?}");
        assert_eq!((&run["cases"], &run["expected_cases"]), (&json!(JUDGED), &json!(CASES)));
        let strict = folder.run(&[&command[..], &["--complete"]].concat());
        assert_eq!((strict.exit_code, strict.stdout.as_str()), (2, ""), "{command:?}");
        for part in ["--complete: out: the run is unfinished: 15 of 24", "hint: run the same"] {
            assert!(strict.stderr.contains(part), "{command:?}: {}", strict.stderr);
        }
    }
    let text = folder.run(&["rank", "out", "--resamples", "50"]);
    assert!(text.stdout.starts_with(NOTICE), "{}", text.stdout);
    assert_eq!(text.stderr, "");
    let csv = folder.run(&["rank", "out", "--resamples", "50", "--format", "csv"]);
    assert!(csv.stderr.contains(NOTICE) && csv.stdout.starts_with("model,"), "{}", csv.stdout);
    let page = folder.run(&["report", "out", "--resamples", "50", "--out", "page.html"]);
    assert!(page.stderr.contains(NOTICE), "{}", page.stderr);
    let html = folder.read("page.html");
    let position = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(position("the run is unfinished: 15 of 24") < position("Summary</h2>"));
}

#[test]
fn complete_run_has_no_notice() {
    let folder = unfinished_folder();
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    for command in commands() {
        let command = [&command[..], &["--complete", "--format", "json"]].concat();
        let output = folder.run(&command);
        assert_eq!(output.exit_code, 0, "{command:?}: {}", output.stderr);
        assert!(!output.stdout.contains("unfinished"), "{command:?}: {}", output.stdout);
        assert!(output.stdout.contains("\"complete\": true"), "{command:?}");
    }
}

#[test]
fn calibration_of_an_unfinished_run_says_so_when_it_is_applied() {
    let folder = unfinished_folder();
    let fit = ["calibrate", "fit", "out", "--resamples", "50", "--out", "map.json"];
    assert_eq!(folder.run(&fit).exit_code, 0);
    let apply = ["calibrate", "apply", "complete", "--calibration", "map.json"];
    let output = folder.run(&apply);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let expected = "map.json: fitted although out: the run is unfinished";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn killed_run_is_unfinished() {
    let folder = Folder::with_cases(CASES);
    let args = ["judge", "cases", "--out", "out", "--panel", "scripted:slow=40"];
    let mut command = folder.command(&args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = folder.path("out/records.jsonl");
    while fs::metadata(&path).map_or(0, |file| file.len()) == 0 {
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let judged = folder.read("out/records.jsonl").lines().count();
    let output = folder.run(&["rank", "out", "--resamples", "20"]);
    let verb = format!("{judged} of {CASES} cases are judged");
    assert!(output.stdout.starts_with("out: the run is unfinished: "), "{}", output.stdout);
    assert!(output.stdout.contains(&verb), "{}", output.stdout);
}

#[test]
fn records_without_a_manifest_have_no_state() {
    let folder = Folder::with_cases(6);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    fs::copy(folder.path("out/records.jsonl"), folder.path("copy.jsonl")).unwrap();
    let output = folder.run(&["rank", "copy.jsonl", "--resamples", "20", "--format", "json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let notice = "copy.jsonl: no run.json next to it, so it is unknown whether the run is complete";
    assert!(output.stderr.contains(notice), "{}", output.stderr);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["runs"][0]["complete"], Value::Null);
    let strict = folder.run(&["rank", "copy.jsonl", "--resamples", "20", "--complete"]);
    assert_eq!(strict.exit_code, 2, "{}", strict.stdout);
    assert!(strict.stderr.contains("copy.jsonl has no run.json next to it"), "{}", strict.stderr);
}

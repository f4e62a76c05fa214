//! End of a run: counts, exit codes and remaining files.

use serde_json::{Value, json};

use crate::folder::{Folder, program_output, valid_case};

#[test]
fn only_verdicts_count_as_new_or_reused() {
    let folder = Folder::with_cases(2);
    let mut cases: Vec<_> = (0..2).map(valid_case).collect();
    cases[1]["responses"][0]["text"] = json!("[[too long]]");
    folder.write_cases(&cases);
    let output = folder.judge("out", &[]);
    assert!(output.stderr.contains("1 new verdict in"), "{}", output.stderr);
    let second_run = folder.judge("out", &[]);
    assert!(second_run.stderr.contains("0 new verdicts in"), "{}", second_run.stderr);
    assert!(second_run.stdout.contains("reused    1 of 1 verdict,"), "{}", second_run.stdout);
}

#[test]
fn flags_in_variables_need_a_known_word() {
    let folder = Folder::with_cases(2);
    let judge = |value: &str| {
        let mut command =
            folder.command(&["judge", "cases", "--panel", "scripted:", "--out", value]);
        program_output(&command.env("ACEM3_SINGLE_ORDER", value).output().unwrap())
    };
    let unknown = judge("maybe");
    assert_eq!(unknown.exit_code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("expected true, false"), "{}", unknown.stderr);
    assert_eq!(judge("on").exit_code, 0);
    assert!(folder.read("on/run.json").contains("\"orders\": \"single\""));
    assert_eq!(judge("off").exit_code, 0);
    assert!(folder.read("off/run.json").contains("\"orders\": \"both\""));
}

#[test]
fn run_without_verdicts_fails() {
    let folder = Folder::with_cases(2);
    let mut cases: Vec<_> = (0..2).map(valid_case).collect();
    for case in &mut cases {
        case["responses"][0]["text"] = json!("[[too long]]");
    }
    folder.write_cases(&cases);
    let output = folder.judge("out", &[]);
    assert_eq!(output.exit_code, 3, "{}", output.stderr);
    assert!(
        output.stderr.contains("all records are unscored\n  most often (2 records): a response"),
        "{}",
        output.stderr
    );
    assert_eq!(folder.judge("out", &["--max-unscored", "100"]).exit_code, 0);
}

/// Seven of eight cases have no verdict.
#[test]
fn run_with_few_verdicts_fails() {
    let folder = Folder::with_cases(8);
    let mut cases: Vec<_> = (0..8).map(valid_case).collect();
    for case in &mut cases[1..] {
        case["question"] = json!(5);
    }
    folder.write_cases(&cases);
    let output = folder.judge("out", &[]);
    assert_eq!(output.exit_code, 3, "{}", output.stderr);
    let message = "87.5 % of the records are unscored, more than --max-unscored 50\n  most often (7 records): field `question`";
    assert!(output.stderr.contains(message), "{}", output.stderr);
    assert!(output.stderr.contains("accept this with --max-unscored 88"), "{}", output.stderr);
    assert_eq!(folder.judge("out", &["--max-unscored", "88"]).exit_code, 0);
    // The readable case has three models, so it alone has three records.
    cases[0]["responses"].as_array_mut().unwrap().push(json!({"model": "c", "text": "perhaps"}));
    cases.truncate(4);
    folder.write_cases(&cases);
    let output = folder.judge("three", &[]);
    assert_eq!(output.exit_code, 3, "{}", output.stderr);
    let message = "75.0 % of the cases cannot be read, more than --max-unscored 50";
    assert!(output.stderr.contains(message), "{}", output.stderr);
}

#[test]
fn failure_before_first_record_leaves_no_files() {
    let folder = Folder::with_cases(2);
    let failing_judge = ["judge", "cases", "--panel", "scripted:fail-after=0", "--out"];
    let run = |out: &str| folder.run(&[&failing_judge[..], &[out]].concat());
    assert_eq!(run("out").exit_code, 4);
    assert!(!folder.path("out").exists());
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/notes.txt", "mine");
    assert_eq!(run("mine").exit_code, 4);
    for (name, exists) in [("notes.txt", true), ("records.jsonl", false), ("run.json", false)] {
        assert_eq!(folder.path("mine").join(name).exists(), exists, "{name}");
    }
    // Earlier verdicts stay.
    folder.judge("out", &["--limit", "1"]);
    let before = folder.read("out/records.jsonl");
    assert_eq!(run("out").exit_code, 4);
    assert_eq!(folder.read("out/records.jsonl"), before);
}

/// Redirects stdout to a device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_stdout_exits_4() {
    let folder = Folder::with_cases(2);
    let judge = ["judge", "cases", "--out", "out", "--panel", "scripted:"];
    for args in [&judge[..], &["data", "check", "cases"]] {
        let full_device = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = program_output(&folder.command(args).stdout(full_device).output().unwrap());
        assert_eq!(output.exit_code, 4, "{}", output.stderr);
        assert!(output.stderr.contains("cannot write to stdout"), "{}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{}", output.stderr);
    }
    assert_eq!(folder.records("out").len(), 2);
}

#[test]
fn noted_problems_affect_no_verdict() {
    let folder = Folder::with_cases(2);
    let mut cases: Vec<_> = (0..2).map(valid_case).collect();
    cases[1]["labels"] = json!({"final": "high"});
    folder.write_cases(&cases);
    let output = folder.judge("out", &["--max-unscored", "0", "--format", "json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let summary: Value = serde_json::from_str(&output.stdout).unwrap();
    let counts = &summary["counts"];
    assert_eq!(
        (&counts["judged"], &counts["noted"], &counts["unscored"]),
        (&json!(2), &json!(1), &json!({}))
    );
    assert_eq!(summary["models"][0]["coverage"], 1.0);
    let records = folder.records("out");
    assert_eq!(records[1]["status"], "noted");
    assert!(records[1]["message"].as_str().unwrap().contains("labels"));
    // Statistics ignore the noted record.
    let output = folder.run(&["rank", "out"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
}

/// Non-standard output of Python's `json` module is accepted, and no verdict is lost.
#[test]
fn python_json_lines_are_accepted() {
    let folder = Folder::with_cases(3);
    let cases: Vec<_> = (0..3).map(valid_case).collect();
    folder.write_cases(&cases);
    let name = "cases/cases.jsonl";
    let mut lines: Vec<String> = folder.read(name).lines().map(str::to_owned).collect();
    lines[0].insert_str(1, "\"score\": NaN, ");
    lines[1].pop();
    lines[1] += ", \"labels\": {\"final\": [1e999, 2]}}";
    lines[2] = lines[2].replacen("\"text\":\"", "\"text\":\"\\ud83d ", 1);
    folder.write(name, &(lines.join("\n") + "\n"));
    let output = folder.judge("out", &["--format", "json"]);
    let summary: Value = serde_json::from_str(&output.stdout).unwrap();
    let counts = &summary["counts"];
    assert_eq!((&counts["judged"], &counts["noted"]), (&json!(3), &json!(1)));
    let records = folder.records("out");
    let text = records.last().unwrap()["responses"][0].as_str().unwrap();
    assert!(text.starts_with('\u{fffd}'), "{text}");
}

#[test]
fn foreign_files_are_not_overwritten() {
    let folder = Folder::with_cases(1);
    folder.write_cases(&[valid_case(0)]);
    folder.write("out/run.json", "{\"hello\": 1}");
    let output = folder.judge("out", &[]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("not a run manifest of acem3"), "{}", output.stderr);
    assert_eq!(folder.read("out/run.json"), "{\"hello\": 1}");
    folder.write("file", "");
    let output = folder.judge("file", &[]);
    assert!(output.stderr.contains("is a file, expected a folder"), "{}", output.stderr);
}

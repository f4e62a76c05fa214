//! How runs end: what is counted, what the exit code says, and what is left.

use serde_json::{Value, json};

use crate::folder::{Folder, case, said};

#[test]
fn only_verdicts_are_new_and_reused() {
    let folder = Folder::of(2);
    let mut cases: Vec<_> = (0..2).map(case).collect();
    cases[1]["responses"][0]["text"] = json!("[[too long]]");
    folder.write_cases(&cases);
    let said = folder.judge("out", &[]);
    assert!(said.err.contains("1 new verdict in"), "{}", said.err);
    let again = folder.judge("out", &[]);
    assert!(again.err.contains("0 new verdicts in"), "{}", again.err);
    assert!(
        again.out.contains("reused    1 of 1 verdict,"),
        "{}",
        again.out
    );
}

#[test]
fn a_run_without_one_verdict_is_not_done() {
    let folder = Folder::of(2);
    let mut cases: Vec<_> = (0..2).map(case).collect();
    for case in &mut cases {
        case["responses"][0]["text"] = json!("[[too long]]");
    }
    folder.write_cases(&cases);
    let said = folder.judge("out", &[]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(
        said.err.contains("all records are unscored\nhint: "),
        "{}",
        said.err
    );
    assert_eq!(folder.judge("out", &["--max-unscored", "100"]).code, 0);
}

#[test]
fn what_failed_before_its_first_record_leaves_nothing() {
    let folder = Folder::of(2);
    let fail = [
        "judge",
        "cases",
        "--panel",
        "scripted:fail-after=0",
        "--out",
    ];
    let run = |out: &str| folder.run(&[&fail[..], &[out]].concat());
    assert_eq!(run("out").code, 4);
    assert!(!folder.path("out").exists());
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/notes.txt", "mine");
    assert_eq!(run("mine").code, 4);
    for (name, there) in [
        ("notes.txt", true),
        ("records.jsonl", false),
        ("run.json", false),
    ] {
        assert_eq!(folder.path("mine").join(name).exists(), there, "{name}");
    }
    // What was judged before stays.
    folder.judge("out", &["--limit", "1"]);
    let before = folder.read("out/records.jsonl");
    assert_eq!(run("out").code, 4);
    assert_eq!(folder.read("out/records.jsonl"), before);
}

/// A place that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_summary_that_nobody_can_read_is_not_the_input_s_fault() {
    let folder = Folder::of(2);
    let judge = ["judge", "cases", "--out", "out", "--panel", "scripted:"];
    for args in [&judge[..], &["data", "check", "cases"]] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = folder.command(args).stdout(full).output().unwrap();
        let said = said(&output);
        assert_eq!(said.code, 4, "{}", said.err);
        assert!(said.err.contains("cannot write to stdout"), "{}", said.err);
        assert!(said.err.contains("hint: "), "{}", said.err);
    }
    assert_eq!(folder.records("out").len(), 2);
}

#[test]
fn faults_that_cost_no_verdict_are_noted() {
    let folder = Folder::of(2);
    let mut cases: Vec<_> = (0..2).map(case).collect();
    cases[1]["labels"] = json!({"final": "high"});
    folder.write_cases(&cases);
    let said = folder.judge("out", &["--max-unscored", "0", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let summary: Value = serde_json::from_str(&said.out).unwrap();
    let counts = &summary["counts"];
    assert_eq!(
        (&counts["judged"], &counts["noted"], &counts["unscored"]),
        (&json!(2), &json!(1), &json!({}))
    );
    assert_eq!(summary["models"][0]["coverage"], 1.0);
    let records = folder.records("out");
    assert_eq!(records[1]["status"], "noted");
    assert!(records[1]["message"].as_str().unwrap().contains("labels"));
    // Statistics read past it.
    let said = folder.run(&["rank", "out"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

/// What Python's `json` writes is read, though it is no JSON: no verdict is lost by it.
#[test]
fn lines_as_python_writes_them_cost_nothing() {
    let folder = Folder::of(3);
    let cases: Vec<_> = (0..3).map(case).collect();
    folder.write_cases(&cases);
    let name = "cases/cases.jsonl";
    let mut lines: Vec<String> = folder.read(name).lines().map(str::to_owned).collect();
    lines[0].insert_str(1, "\"score\": NaN, ");
    lines[1].pop();
    lines[1] += ", \"labels\": {\"final\": [1e999, 2]}}";
    lines[2] = lines[2].replacen("\"text\":\"", "\"text\":\"\\ud83d ", 1);
    folder.write(name, &(lines.join("\n") + "\n"));
    let said = folder.judge("out", &["--format", "json"]);
    let summary: Value = serde_json::from_str(&said.out).unwrap();
    let counts = &summary["counts"];
    assert_eq!(
        (&counts["judged"], &counts["noted"]),
        (&json!(3), &json!(1))
    );
    let records = folder.records("out");
    let text = records.last().unwrap()["responses"][0].as_str().unwrap();
    assert!(text.starts_with('\u{fffd}'), "{text}");
}

#[test]
fn the_files_of_somebody_else_are_kept() {
    let folder = Folder::of(1);
    folder.write_cases(&[case(0)]);
    folder.write("out/run.json", "{\"hello\": 1}");
    let said = folder.judge("out", &[]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(
        said.err.contains("not a run manifest of acem3"),
        "{}",
        said.err
    );
    assert_eq!(folder.read("out/run.json"), "{\"hello\": 1}");
    folder.write("file", "");
    let said = folder.judge("file", &[]);
    assert!(
        said.err.contains("is a file, expected a folder"),
        "{}",
        said.err
    );
}

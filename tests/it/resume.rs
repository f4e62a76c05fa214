//! Interrupted, killed and repeated runs: resuming, locking and superseded records.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::folder::{Folder, program_output, valid_case};

/// Number of cases of runs that are interrupted.
const CASES: usize = 24;

/// Starts a slow run and waits until it has written a record.
fn start_run(folder: &Folder, out: &str) -> Child {
    let args = ["judge", "cases", "--out", out, "--batch-size", "2", "--panel", "scripted:slow=40"];
    let mut command = folder.command(&args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while fs::metadata(folder.path(out).join("records.jsonl")).map_or(0, |file| file.len()) == 0 {
        assert!(start.elapsed() < Duration::from_mins(1), "no record was written");
        sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn second_run_reuses_all_verdicts() {
    let folder = Folder::with_cases(4);
    folder.judge("out", &[]);
    let before = folder.read("out/records.jsonl");
    let output = folder.judge("out", &[]);
    assert!(
        output.stdout.contains("reused    4 of 4 verdicts, from an earlier run"),
        "{}",
        output.stdout
    );
    assert!(output.stderr.contains("0 new verdicts"), "{}", output.stderr);
    assert_eq!(folder.read("out/records.jsonl"), before);
    assert_eq!(folder.manifest("out")["counts"]["reused"], 4);
}

#[test]
fn resume_reproduces_uninterrupted_run() {
    let folder = Folder::with_cases(CASES);
    assert_eq!(folder.judge("complete", &[]).exit_code, 0);
    let mut child = start_run(&folder, "out");
    child.kill().unwrap();
    child.wait().unwrap();
    let written = folder.read("out/records.jsonl").lines().count();
    assert!((1..CASES).contains(&written), "{written} records when killed");
    assert_eq!(folder.manifest("out")["status"], "running");
    let output = folder.judge("out", &["--batch-size", "5"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(
        output.stdout.contains(&format!("of {CASES} verdicts, from an earlier run")),
        "{}",
        output.stdout
    );
    assert_eq!(folder.read("out/records.jsonl"), folder.read("complete/records.jsonl"));
    assert!(!folder.path("out/records.aside.jsonl").exists());
}

#[test]
fn torn_last_record_is_judged_again() {
    let folder = Folder::with_cases(4);
    folder.judge("complete", &[]);
    let complete = folder.read("complete/records.jsonl");
    for length in [1, complete.len() / 2, complete.len() - 2] {
        let out = format!("torn{length}");
        folder.write(&format!("{out}/records.jsonl"), &complete[..length]);
        let output = folder.judge(&out, &[]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(
            output.stderr.contains("the last record of an interrupted run is incomplete"),
            "{}",
            output.stderr
        );
        assert_eq!(folder.read(&format!("{out}/records.jsonl")), complete);
    }
}

#[cfg(unix)]
#[test]
fn interrupted_run_exits_130_and_resumes() {
    let folder = Folder::with_cases(CASES);
    folder.judge("complete", &[]);
    let child = start_run(&folder, "out");
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = program_output(&child.wait_with_output().unwrap());
    assert_eq!((output.exit_code, output.stdout.as_str()), (130, ""), "{}", output.stderr);
    assert!(output.stderr.contains("stopping after the current batch"), "{}", output.stderr);
    assert!(output.stderr.contains("run the same command to resume"), "{}", output.stderr);
    assert_eq!(folder.manifest("out")["status"], "interrupted");
    let text = folder.read("out/records.jsonl");
    assert!(text.ends_with('\n') && text.lines().count() < CASES);
    assert!(folder.read("complete/records.jsonl").starts_with(&text));
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("complete/records.jsonl"));
}

#[test]
fn concurrent_run_is_rejected() {
    let folder = Folder::with_cases(CASES);
    let mut child = start_run(&folder, "out");
    let second = folder.judge("out", &[]);
    assert_eq!(second.exit_code, 2);
    let expected = format!("another run is writing here (process {})", child.id());
    assert!(second.stderr.contains(&expected), "{}", second.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
}

#[test]
fn resume_with_another_judge_is_rejected() {
    let folder = Folder::with_cases(3);
    folder.judge("out", &[]);
    let before = folder.read("out/records.jsonl");
    let output = folder.judge("out", &["--single-order"]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("orders was both, is single"), "{}", output.stderr);
    assert!(output.stderr.contains("--out out-2"), "{}", output.stderr);
    let embedded = folder.run(&["judge", "cases", "--out", "out"]);
    assert_eq!(embedded.exit_code, 2, "{}", embedded.stdout);
    let expected = "(made by scripted test judge (seed 0), which differs in ";
    assert!(embedded.stderr.contains(expected), "{}", embedded.stderr);
    assert_eq!(folder.read("out/records.jsonl"), before);
    assert_eq!(folder.manifest("out")["status"], "done");
}

#[test]
fn no_resume_rejects_existing_verdicts() {
    let folder = Folder::with_cases(2);
    assert_eq!(folder.judge("out", &["--no-resume"]).exit_code, 0);
    let output = folder.judge("out", &["--no-resume"]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("already contains verdicts"), "{}", output.stderr);
    assert_eq!(folder.records("out").len(), 2);
}

#[test]
fn only_changed_cases_are_judged_again() {
    let folder = Folder::with_cases(6);
    folder.judge("out", &[]);
    let mut cases: Vec<_> = (0..6).map(valid_case).collect();
    cases[1]["question"] = json!("something else?");
    cases[2]["labels"] = json!({"final": [0, 5]});
    cases.swap(3, 4);
    folder.write_cases(&cases);
    let output = folder.judge("out", &[]);
    assert!(output.stdout.contains("reused    5 of 6"), "{}", output.stdout);
    assert!(
        output
            .stderr
            .contains("differs from the records of the earlier one after 1 record: other input"),
        "{}",
        output.stderr
    );
    folder.judge("new", &[]);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("new/records.jsonl"));
    assert_eq!(folder.read("out/records.aside.jsonl").lines().count(), 1);
}

#[test]
fn changed_image_is_judged_again() {
    let folder = Folder::with_cases(4);
    folder.judge("out", &[]);
    let picture = image::GrayImage::from_pixel(5, 5, image::Luma([77]));
    picture.save(folder.path("cases/images/1.png")).unwrap();
    let output = folder.judge("out", &[]);
    assert!(output.stdout.contains("reused    2 of 4"), "{}", output.stdout);
}

#[test]
fn failed_judge_exits_4_and_run_resumes() {
    let folder = Folder::with_cases(6);
    let args = ["judge", "cases", "--out", "out", "--batch-size", "2", "--panel"];
    let output = folder.run(&[&args[..], &["scripted:fail-after=3"]].concat());
    assert_eq!((output.exit_code, output.stdout.as_str()), (4, ""));
    assert!(output.stderr.contains("the judge failed at case `c3`"), "{}", output.stderr);
    assert!(output.stderr.contains("because: scripted to fail here"), "{}", output.stderr);
    assert!(output.stderr.contains("hint: finished verdicts are safe"), "{}", output.stderr);
    assert_eq!(folder.manifest("out")["status"], "failed");
    assert_eq!(folder.records("out").len(), 3);
    let output = folder.run(&[&args[..], &["scripted:"]].concat());
    assert!(output.stdout.contains("reused    3 of 6"), "{}", output.stdout);
}

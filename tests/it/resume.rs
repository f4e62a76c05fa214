//! Runs that end early, and what the next one makes of it.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::folder::{Folder, case, said};

const CASES: usize = 24;

/// A slow run that is under way, with at least one record written.
fn started(folder: &Folder, out: &str) -> Child {
    let args = [
        "judge",
        "cases",
        "--out",
        out,
        "--batch-size",
        "2",
        "--panel",
        "scripted:slow=40",
    ];
    let mut command = folder.command(&args);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while fs::metadata(folder.path(out).join("records.jsonl")).map_or(0, |file| file.len()) == 0 {
        assert!(
            start.elapsed() < Duration::from_mins(1),
            "no record was written"
        );
        sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn a_second_run_reuses_everything() {
    let folder = Folder::of(4);
    folder.judge("out", &[]);
    let before = folder.read("out/records.jsonl");
    let said = folder.judge("out", &[]);
    assert!(
        said.out
            .contains("reused    4 of 4 verdicts, from an earlier run"),
        "{}",
        said.out
    );
    assert!(said.err.contains("0 new verdicts"), "{}", said.err);
    assert_eq!(folder.read("out/records.jsonl"), before);
    assert_eq!(folder.manifest("out")["counts"]["reused"], 4);
}

#[test]
fn a_killed_run_resumed_equals_an_uninterrupted_one() {
    let folder = Folder::of(CASES);
    assert_eq!(folder.judge("whole", &[]).code, 0);
    let mut child = started(&folder, "out");
    child.kill().unwrap();
    child.wait().unwrap();
    let written = folder.read("out/records.jsonl").lines().count();
    assert!(
        (1..CASES).contains(&written),
        "{written} records when killed"
    );
    assert_eq!(folder.manifest("out")["status"], "running");
    let said = folder.judge("out", &["--batch-size", "5"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out
            .contains(&format!("of {CASES} verdicts, from an earlier run")),
        "{}",
        said.out
    );
    assert_eq!(
        folder.read("out/records.jsonl"),
        folder.read("whole/records.jsonl")
    );
    assert!(!folder.path("out/records.aside.jsonl").exists());
}

#[test]
fn a_torn_last_line_is_made_anew() {
    let folder = Folder::of(4);
    folder.judge("whole", &[]);
    let whole = folder.read("whole/records.jsonl");
    for cut in [1, whole.len() / 2, whole.len() - 1] {
        let out = format!("torn{cut}");
        folder.write(&format!("{out}/records.jsonl"), &whole[..cut]);
        let said = folder.judge(&out, &[]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(
            said.err
                .contains("the last record of an interrupted run is incomplete"),
            "{}",
            said.err
        );
        assert_eq!(folder.read(&format!("{out}/records.jsonl")), whole);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_says_so_and_resumes() {
    let folder = Folder::of(CASES);
    folder.judge("whole", &[]);
    let child = started(&folder, "out");
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let said = said(&child.wait_with_output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (130, ""), "{}", said.err);
    assert!(
        said.err.contains("stopping after the current batch"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("run the same command to resume"),
        "{}",
        said.err
    );
    assert_eq!(folder.manifest("out")["status"], "interrupted");
    let text = folder.read("out/records.jsonl");
    assert!(text.ends_with('\n') && text.lines().count() < CASES);
    assert!(folder.read("whole/records.jsonl").starts_with(&text));
    assert_eq!(folder.judge("out", &[]).code, 0);
    assert_eq!(
        folder.read("out/records.jsonl"),
        folder.read("whole/records.jsonl")
    );
}

#[test]
fn two_runs_at_once_are_refused() {
    let folder = Folder::of(CASES);
    let mut child = started(&folder, "out");
    let second = folder.judge("out", &[]);
    assert_eq!(second.code, 2);
    let expected = format!("another run is writing here (process {})", child.id());
    assert!(second.err.contains(&expected), "{}", second.err);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(folder.judge("out", &[]).code, 0);
}

#[test]
fn another_judge_is_refused_by_name() {
    let folder = Folder::of(3);
    folder.judge("out", &[]);
    let before = folder.read("out/records.jsonl");
    let said = folder.judge("out", &["--single-order"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("orders was both, is single"),
        "{}",
        said.err
    );
    assert!(said.err.contains("--out out-2"), "{}", said.err);
    assert_eq!(folder.read("out/records.jsonl"), before);
    assert_eq!(folder.manifest("out")["status"], "done");
}

#[test]
fn fresh_deletes_nothing() {
    let folder = Folder::of(2);
    assert_eq!(folder.judge("out", &["--no-resume"]).code, 0);
    let said = folder.judge("out", &["--no-resume"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("already contains verdicts"),
        "{}",
        said.err
    );
    assert_eq!(folder.records("out").len(), 2);
}

#[test]
fn a_changed_input_is_judged_where_it_changed() {
    let folder = Folder::of(6);
    folder.judge("out", &[]);
    let mut cases: Vec<_> = (0..6).map(case).collect();
    cases[1]["question"] = json!("something else?");
    cases[2]["labels"] = json!({"final": [0, 5]});
    cases.swap(3, 4);
    folder.write_cases(&cases);
    let said = folder.judge("out", &[]);
    assert!(said.out.contains("reused    5 of 6"), "{}", said.out);
    assert!(
        said.err
            .contains("the input or the settings differ from the earlier run after 1 records"),
        "{}",
        said.err
    );
    folder.judge("new", &[]);
    assert_eq!(
        folder.read("out/records.jsonl"),
        folder.read("new/records.jsonl")
    );
    assert_eq!(folder.read("out/records.aside.jsonl").lines().count(), 1);
}

#[test]
fn a_changed_image_is_judged_again() {
    let folder = Folder::of(4);
    folder.judge("out", &[]);
    let picture = image::GrayImage::from_pixel(5, 5, image::Luma([77]));
    picture.save(folder.path("cases/images/1.png")).unwrap();
    let said = folder.judge("out", &[]);
    assert!(said.out.contains("reused    2 of 4"), "{}", said.out);
}

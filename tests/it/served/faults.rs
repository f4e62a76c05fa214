//! Servers that fail: nothing is lost, nothing is judged twice, and the records are those of a server
//! that works.

use std::time::Duration;

use super::mock_engine::{EngineFlaw, EngineSettings, MockEngine};
use crate::folder::{Folder, valid_case};

fn settings() -> EngineSettings {
    EngineSettings { owner: "vllm", delay: Duration::from_millis(5), ..EngineSettings::default() }
}

#[test]
fn faults_of_the_server_do_not_change_the_records() {
    let folder = Folder::with_cases(60);
    let sound = MockEngine::start(settings());
    let flags = ["--panel", &sound.url, "--model", "judge"];
    assert_eq!(super::judge(&folder, "sound", &flags).exit_code, 0);
    assert_eq!(sound.requests(), 60 * 8 + 4, "one request per member and order, and the handshake");
    assert!(sound.busy() >= settings().delay * (60 * 8), "each answer takes at least its delay");
    let faulty = MockEngine::start(EngineSettings { faults_percent: 12, ..settings() });
    let flags = ["--panel", &faulty.url, "--model", "judge", "--concurrency", "16"];
    let result = super::judge(&folder, "faulty", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(faulty.requests() > sound.requests());
    assert!(faulty.most_in_progress() <= 16);
    assert_eq!(folder.read("faulty/records.jsonl"), folder.read("sound/records.jsonl"));
}

#[test]
fn rejected_case_is_unscored_and_the_others_are_judged() {
    let folder = Folder::with_cases(4);
    let question = valid_case(2)["question"].as_str().unwrap().to_owned();
    let word: &'static str = Box::leak(question.into_boxed_str());
    let engine = MockEngine::start(EngineSettings { rejects: Some(word), ..settings() });
    let flags = ["--panel", &engine.url, "--model", "judge"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let statuses: Vec<_> = folder.records("out").iter().map(|r| r["status"].clone()).collect();
    assert_eq!(statuses, ["judged", "judged", "unscored", "judged"]);
    let record = &folder.records("out")[2];
    assert_eq!(record["reason"], "refused");
    assert!(record["message"].as_str().unwrap().contains("cannot process this"), "{record}");
    // Another --out requests them again.
    let strict = super::judge(&folder, "out", &[&flags[..], &["--max-unscored", "0"]].concat());
    assert_eq!(strict.exit_code, 3);
    assert!(strict.stderr.contains("judge into another --out"), "{}", strict.stderr);
}

#[test]
fn key_that_is_rejected_later_is_named() {
    let folder = Folder::with_cases(2);
    let flaws = &[EngineFlaw::RejectsKeyLater];
    let engine = MockEngine::start(EngineSettings { flaws, ..settings() });
    let flags = ["--panel", &engine.url, "--model", "judge"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    let hint = "set the environment variable OPENAI_API_KEY to the key of the server";
    assert!(result.stderr.contains(hint), "{}", result.stderr);
}

#[test]
fn server_that_asks_to_wait_for_longer_than_an_outage_ends_the_run() {
    let folder = Folder::with_cases(2);
    // In the handshake, after it, and with one request at a time.
    for (quota, more) in [(0, &[][..]), (4, &[]), (6, &["--concurrency", "1"]), (5, &["--dry-run"])]
    {
        let engine = MockEngine::start(EngineSettings { quota: Some(quota), ..settings() });
        let flags = ["--panel", &engine.url, "--model", "judge", "--max-outage", "30"];
        let result = super::judge(&folder, "out", &[&flags[..], more].concat());
        assert_eq!(result.exit_code, 4, "{}", result.stderr);
        assert!(result.stderr.contains("server asks to wait 3600 seconds"), "{}", result.stderr);
    }
}

#[test]
fn killed_and_resumed_run_has_the_records_of_a_whole_one() {
    let folder = Folder::with_cases(40);
    let engine = MockEngine::start(settings());
    let flags = ["--panel", &engine.url, "--model", "judge", "--concurrency", "4"];
    assert_eq!(super::judge(&folder, "whole", &flags).exit_code, 0);
    let mut child = folder
        .command(&[&["judge", "cases", "--out", "out"], &flags[..]].concat())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let records = folder.path("out/records.jsonl");
    let written = || std::fs::read_to_string(&records).map_or(0, |text| text.lines().count());
    while written() < 5 {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = written();
    assert!(kept < 40, "the run ended before it was killed");
    let before = engine.requests();
    assert_eq!(super::judge(&folder, "out", &flags).exit_code, 0);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("whole/records.jsonl"));
    let asked = engine.requests() - before;
    assert!(asked <= (40 - kept as u64 + 1) * 8 + 4, "{asked} requests after {kept} records");
}

#[test]
fn server_that_goes_down_ends_the_run_and_the_same_command_resumes() {
    let folder = Folder::with_cases(60);
    let engine = MockEngine::start(settings());
    let flags =
        ["--panel", &engine.url, "--model", "judge", "--concurrency", "4", "--max-outage", "1"];
    assert_eq!(super::judge(&folder, "whole", &flags).exit_code, 0);
    let run = || super::judge(&folder, "out", &flags);
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(run);
        let records = folder.path("out/records.jsonl");
        while std::fs::read_to_string(&records).map_or(0, |text| text.lines().count()) < 5 {
            std::thread::sleep(Duration::from_millis(10));
        }
        engine.set_down(true);
        run.join().unwrap()
    });
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    assert!(result.stderr.contains("no request succeeded"), "{}", result.stderr);
    let records = folder.records("out");
    assert!((5..60).contains(&records.len()), "{}", records.len());
    assert!(records.iter().all(|record| record["status"] == "judged"));
    engine.set_down(false);
    assert_eq!(run().exit_code, 0);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("whole/records.jsonl"));
}

#[test]
fn server_that_breaks_the_format_is_no_problem_of_the_cases() {
    let folder = Folder::with_cases(2);
    let flaws = &[EngineFlaw::ForgetsConstraint];
    let engine = MockEngine::start(EngineSettings { flaws, ..settings() });
    let flags = ["--panel", &engine.url, "--model", "judge", "-v"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 3, "{}", result.stderr);
    assert!(result.stderr.contains("does not match its format"), "{}", result.stderr);
    assert!(!result.stderr.contains("data check"), "{}", result.stderr);
    assert!(!result.stderr.contains("run again with --verbose"), "{}", result.stderr);
    assert!(result.stderr.contains("run the same command again when"), "{}", result.stderr);
    assert!(folder.records("out").iter().all(|record| record["reason"] == "format"));
    // The same command judges them again, and the earlier records are not those of other input.
    let engine = MockEngine::start(EngineSettings { flaws, ..settings() });
    let result = super::judge(&folder, "out", &["--panel", &engine.url, "--model", "judge"]);
    assert_eq!(result.exit_code, 3, "{}", result.stderr);
    assert!(!result.stderr.contains("differs from the records"), "{}", result.stderr);
}

#[test]
fn records_without_an_answer_are_judged_again() {
    let folder = Folder::with_cases(3);
    let failing = MockEngine::start(EngineSettings { flaws: &[EngineFlaw::Fails], ..settings() });
    let judge = |engine: &MockEngine, out: &str| {
        super::judge(&folder, out, &["--panel", &engine.url, "--model", "judge"])
    };
    let result = judge(&failing, "out");
    assert_eq!(result.exit_code, 3, "{}", result.stderr);
    assert!(folder.records("out").iter().all(|record| record["reason"] == "transport"));
    let sound = MockEngine::start(settings());
    let result = judge(&sound, "out");
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(!result.stderr.contains("differs from the records"), "{}", result.stderr);
    assert_eq!(judge(&sound, "whole").exit_code, 0);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("whole/records.jsonl"));
}

/// A server with a quota: what it answered must not be lost.
#[test]
fn stopped_run_has_finished_most_of_what_it_asked_for() {
    let folder = Folder::with_cases(60);
    let engine = MockEngine::start(EngineSettings { quota: Some(204), ..settings() });
    let flags = ["--panel", &engine.url, "--model", "judge", "--concurrency", "8"];
    let result = super::judge(&folder, "out", &[&flags[..], &["--max-outage", "30"]].concat());
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    // 200 answers after the handshake are 25 cases.
    let finished = folder.records("out").len();
    assert!((20..=25).contains(&finished), "{finished}");
}

#[test]
fn verify_says_that_the_server_failed_and_not_that_records_differ() {
    let folder = Folder::with_cases(3);
    let sound = MockEngine::start(settings());
    let flags = ["--panel", &sound.url, "--model", "judge"];
    assert_eq!(super::judge(&folder, "out", &flags).exit_code, 0);
    let broken = MockEngine::start(EngineSettings { flaws: &[EngineFlaw::Fails], ..settings() });
    let result = folder.run(&["verify", "out", "--panel", &broken.url, "--model", "judge"]);
    assert_eq!(result.exit_code, 1, "{}", result.stderr);
    assert!(result.stdout.contains("not judged again: the server gave no"), "{}", result.stdout);
    assert!(result.stdout.contains("0 different, 3 not possible"), "{}", result.stdout);
    let refusing = MockEngine::start(EngineSettings { rejects: Some("Response"), ..settings() });
    let result = folder.run(&["verify", "out", "--panel", &refusing.url, "--model", "judge"]);
    assert!(result.stdout.contains("0 different, 3 not possible"), "{}", result.stdout);
}

/// A late answer to an early case does not cost the verdicts on later ones.
#[test]
fn verdicts_after_a_late_answer_are_kept() {
    let folder = Folder::with_cases(40);
    let sound = MockEngine::start(settings());
    let flags = |engine: &MockEngine| {
        ["--panel", &engine.url, "--model", "judge", "--concurrency", "8"].map(str::to_owned)
    };
    let judge = |out: &str, engine: &MockEngine| {
        let flags = flags(engine);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        super::judge(&folder, out, &[&flags[..], &["--max-outage", "20"]].concat())
    };
    assert_eq!(judge("whole", &sound).exit_code, 0);
    let limited =
        MockEngine::start(EngineSettings { late: Some(4), quota: Some(164), ..settings() });
    let stopped = judge("out", &limited);
    assert_eq!(stopped.exit_code, 4, "{}", stopped.stderr);
    let paid = folder.manifest("out")["usage"]["requests"].as_u64().unwrap();
    // Answers that come after the end of the run are not counted.
    assert!((150..160).contains(&paid), "{paid}");
    let before = sound.requests();
    let resumed = judge("out", &sound);
    assert_eq!(resumed.exit_code, 0, "{}", resumed.stderr);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("whole/records.jsonl"));
    assert!(!folder.path("out/records.aside.jsonl").exists());
    // Of the 20 cases that 160 answers can be, the first lacks one.
    let asked = sound.requests() - before;
    assert!(asked <= (40 - 15) * 8 + 4, "{asked}");
}

/// Requests are paid, so cases that have sent some are finished, and the others are not started.
#[test]
fn interrupt_keeps_the_verdicts_in_progress() {
    let folder = Folder::with_cases(40);
    let engine = MockEngine::start(settings());
    let flags = ["--panel", &engine.url, "--model", "judge", "--concurrency", "4"];
    let child = folder
        .command(&[&["judge", "cases", "--out", "out"], &flags[..]].concat())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let records = folder.path("out/records.jsonl");
    while std::fs::read_to_string(&records).map_or(0, |text| text.lines().count()) < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let before = engine.requests();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    // Eight cases are in progress, and few of them have sent a request.
    let later = engine.requests() - before;
    assert!(later <= 40, "{later} requests after the interrupt");
    assert!(stderr.contains("stopping after the cases that have sent requests"), "{stderr}");
    let kept = folder.records("out").len() as u64;
    assert!(kept < 40, "the run ended before it was interrupted");
    assert_eq!(engine.requests(), kept * 8 + 4, "each answer is in a record");
}

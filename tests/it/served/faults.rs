//! Servers that fail: nothing is lost, nothing is judged twice, and the records are those of a server
//! that works.

use std::time::Duration;

use super::mock_engine::{EngineSettings, MockEngine};
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
}

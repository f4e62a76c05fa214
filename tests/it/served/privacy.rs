//! Cases stay on this machine unless the user names the host, and keys appear nowhere.

use super::judge_with_env;
use super::mock_engine::{EngineSettings, MockEngine};
use crate::folder::Folder;

#[test]
fn other_hosts_need_permission() {
    let folder = Folder::with_cases(1);
    let flags = ["--panel", "https://judge.example/v1", "--model", "judge"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains("would leave this machine"), "{}", result.stderr);
    assert!(result.stderr.contains("--allow-host judge.example"), "{}", result.stderr);
    assert!(!folder.path("out").exists());
}

#[test]
fn key_comes_from_the_environment_and_appears_nowhere() {
    let key = "sk-very-secret-123456";
    let engine = MockEngine::start(EngineSettings {
        owner: "someone",
        key: Some(key),
        ..EngineSettings::default()
    });
    let folder = Folder::with_cases(1);
    let flags = ["--panel", &engine.url, "--model", "judge", "--api-key-env", "JUDGE_KEY", "-v"];
    let result = judge_with_env(&folder, "out", &flags, &[("JUDGE_KEY", key)]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let files = ["out/records.jsonl", "out/run.json"].map(|file| folder.read(file));
    for text in [&result.stdout, &result.stderr].into_iter().chain(&files) {
        assert!(!text.contains(key), "{text}");
    }
    // The server repeats a wrong key.
    let wrong = "sk-other-secret-654321";
    let result = judge_with_env(&folder, "other", &flags, &[("JUDGE_KEY", wrong)]);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains("401") && !result.stderr.contains(wrong), "{}", result.stderr);
    let missing = super::judge(&folder, "missing", &flags);
    assert!(missing.stderr.contains("JUDGE_KEY has no key"), "{}", missing.stderr);
}

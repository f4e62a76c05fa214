//! `acem3 verify` of runs of served judges.

use serde_json::{Value, json};

use super::mock_engine::{EngineSettings, MockEngine};
use crate::folder::Folder;

#[test]
fn verify_judges_with_the_server_again() {
    let folder = Folder::with_cases(5);
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let panel = ["--panel", &engine.url, "--model", "judge"];
    let result = super::judge(&folder, "out", &panel);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let verify = |more: &[&str]| {
        let output = folder.run(&[&["verify", "out", "--sample", "3"], &panel[..], more].concat());
        (output.exit_code, output.stdout, output.stderr)
    };
    let (code, text, stderr) = verify(&[]);
    assert_eq!(code, 0, "{text}{stderr}");
    assert!(text.contains("3 judged again"), "{text}");
    assert!(text.contains("scores were compared exactly"), "{text}");
    // A server with other answers gives other scores.
    engine.change_answers();
    let (code, text, _) = verify(&["--format", "json"]);
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &result["equal"]), (1, &json!(false)));
    let differing = result["sample"]["differing"].as_array().unwrap();
    assert!(!differing.is_empty());
    assert!(differing.iter().all(|record| record["scores"] == true), "{differing:?}");
    let (_, text, _) = verify(&[]);
    assert!(text.contains("other scores in"), "{text}");
    // No tolerance makes other scores equal.
    assert_eq!(verify(&["--tolerance", "5"]).0, 1);
    // A server that is away is an error, not a difference.
    engine.set_down(true);
    let (code, text, stderr) = verify(&[]);
    assert_eq!(code, 4, "{text}{stderr}");
}

#[test]
fn verify_without_the_flags_of_the_server_says_what_to_pass() {
    let folder = Folder::with_cases(2);
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let panel = ["--panel", &engine.url, "--model", "judge"];
    assert_eq!(super::judge(&folder, "out", &panel).exit_code, 0);
    let other = folder.run(&["verify", "out"]);
    assert_eq!(other.exit_code, 2);
    assert!(other.stderr.contains("verdicts of another judge"), "{}", other.stderr);
    assert!(other.stderr.contains(&format!("--panel {}", engine.url)), "{}", other.stderr);
    // The records alone need no server.
    assert_eq!(folder.run(&["verify", "out", "--sample", "0"]).exit_code, 0);
}

//! Cases stay on this machine unless the user names the host, and keys appear nowhere.

use serde_json::{Value, json};

use super::judge_with_env;
use super::mock_engine::{EngineSettings, MockEngine};
use crate::folder::{Folder, valid_case};

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

/// A server may repeat the key in an answer.
#[test]
fn key_in_an_answer_is_replaced() {
    let key = "sk-very/secret-123456";
    let engine = MockEngine::start(EngineSettings {
        owner: "someone",
        key: Some(key),
        answers_as: Some(key),
        ..EngineSettings::default()
    });
    let folder = Folder::with_cases(1);
    let flags = ["--panel", &engine.url, "--model", "judge", "--api-key-env", "JUDGE_KEY"];
    let result = judge_with_env(&folder, "out", &flags, &[("JUDGE_KEY", key)]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stderr.contains("its answers name the model …"), "{}", result.stderr);
    for file in ["out/records.jsonl", "out/run.json"] {
        assert!(!folder.read(file).contains(key));
    }
}

#[test]
fn each_member_sends_its_own_key() {
    let engine = MockEngine::start(EngineSettings {
        owner: "someone",
        models: &["good", "bad"],
        key: Some("sk-first-123456"),
        ..EngineSettings::default()
    });
    let folder = Folder::with_cases(1);
    let member = |name: &str, model: &str| {
        format!("{name} = {{ model = \"{model}\", api_key_env = \"KEY_OF_{model}\" }}\n")
    };
    let experts = ["expression", "medical_knowledge", "patient_relevance"];
    let experts = experts.map(|name| member(name, "good")).concat();
    let file = |conclusion: &str| {
        let conclusion = member("conclusion", conclusion);
        format!("schema = 1\nendpoint = \"{}\"\n[members]\n{experts}{conclusion}", engine.url)
    };
    let variables = [("KEY_OF_good", "sk-first-123456"), ("KEY_OF_bad", "sk-second-654321")];
    for (conclusion, exit_code) in [("good", 0), ("bad", 2)] {
        folder.write("four.toml", &file(conclusion));
        let result = judge_with_env(&folder, conclusion, &["--panel", "four.toml"], &variables);
        assert_eq!(result.exit_code, exit_code, "{}", result.stderr);
    }
}

#[test]
fn case_that_is_local_only_is_not_sent_to_an_allowed_host() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let proxy = engine.url.trim_end_matches("/v1").to_owned();
    let folder = Folder::with_cases(3);
    let mut cases: Vec<Value> = (0..3).map(valid_case).collect();
    cases[1]["local_only"] = json!(true);
    folder.write_cases(&cases);
    engine.keep_bodies();
    let flags = ["--panel", "http://judge.example/v1", "--model", "judge", "--allow-http"];
    let variables = [("HTTP_PROXY", proxy.as_str()), ("http_proxy", proxy.as_str())];
    let refused = judge_with_env(&folder, "out", &flags, &variables);
    assert_eq!(refused.exit_code, 2, "{}", refused.stderr);
    assert_eq!((engine.requests(), engine.bodies().len()), (0, 0));
    let flags = [&flags[..], &["--allow-host", "judge.example"]].concat();
    let result = judge_with_env(&folder, "out", &flags, &variables);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let first = result.stderr.lines().next().unwrap_or_default();
    assert_eq!(first, "images and texts of the cases are sent to judge.example (--allow-host)");
    let records = folder.records("out");
    let statuses: Vec<&Value> = records.iter().map(|record| &record["status"]).collect();
    assert_eq!(statuses, ["judged", "unscored", "judged"]);
    assert!(records[1]["message"].as_str().unwrap().contains("local_only"), "{}", records[1]);
    let sent: String = engine.bodies().iter().map(Value::to_string).collect();
    assert!(sent.contains("what is shown in 0?") && !sent.contains("what is shown in 1?"));
    // On this machine, the case is judged.
    let local = ["--panel", &engine.url, "--model", "judge"];
    assert_eq!(super::judge(&folder, "out", &local).exit_code, 0);
    assert!(folder.records("out").iter().all(|record| record["status"] == "judged"));
    cases[2]["local_only"] = json!("yes");
    folder.write_cases(&cases);
    super::judge(&folder, "text", &local);
    let record = &folder.records("text")[2];
    assert!(record["message"].as_str().unwrap().contains("expected true or false"), "{record}");
    // A misspelt field must not send the case away.
    for name in ["localonly", "local-only", "localOnly", "local_onlly", "Local_Only"] {
        let mut case = valid_case(7);
        case[name] = json!(true);
        folder.write_cases(&[case]);
        let result = super::judge(&folder, name, &local);
        let record = &folder.records(name)[0];
        assert_eq!(record["status"], "unscored", "{name}: {}", result.stderr);
        let message = record["message"].as_str().unwrap();
        assert!(message.contains("did you mean `local_only`?"), "{name}: {message}");
    }
}

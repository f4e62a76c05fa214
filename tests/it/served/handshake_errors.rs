//! Servers that cannot judge now, or not at this address: each error says what to do.

use super::mock_engine::{EngineFlaw, EngineSettings, MockEngine};
use crate::folder::{Folder, ProgramOutput};

fn settings(flaws: &'static [EngineFlaw]) -> EngineSettings {
    EngineSettings { owner: "vllm", flaws, ..EngineSettings::default() }
}

fn judge(engine: &MockEngine, more: &[&str]) -> (Folder, ProgramOutput) {
    let folder = Folder::with_cases(2);
    let flags = ["--panel", &engine.url, "--model", "judge"];
    let result = super::judge(&folder, "out", &[&flags[..], more].concat());
    (folder, result)
}

#[test]
fn server_that_loads_its_model_is_waited_for() {
    let busy = EngineSettings { busy: 3, retry_after: Some("0.1"), ..settings(&[]) };
    let (folder, result) = judge(&MockEngine::start(busy), &[]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert_eq!(folder.records("out").len(), 2);
}

#[test]
fn user_is_told_that_the_server_is_waited_for() {
    let busy = EngineSettings { busy: 1, retry_after: Some("1"), ..settings(&[]) };
    let (_, result) = judge(&MockEngine::start(busy), &["--max-outage", "2"]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let told = "waiting for the server, at most 2.0 s (--max-outage): status 503: Loading model\n";
    assert!(result.stderr.contains(told), "{}", result.stderr);
}

#[test]
fn server_that_does_not_run_yet_can_be_tried_again() {
    let engine = MockEngine::start(settings(&[]));
    let (folder, url) = (Folder::with_cases(1), "http://127.0.0.1:9/v1");
    let result = super::judge(&folder, "out", &["--panel", url, "--model", "judge"]);
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    assert!(result.stderr.contains("start the server"), "{}", result.stderr);
    assert!(!result.stderr.contains("--model"), "{}", result.stderr);
    let host = engine.url.strip_prefix("http://").unwrap();
    let result = super::judge(&folder, "out", &["--panel", host, "--model", "judge"]);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains(&format!("pass {}", engine.url)), "{}", result.stderr);
}

#[test]
fn server_without_capacity_ends_the_run_and_not_the_input() {
    for (retry_after, part) in [(None, "Loading model"), (Some("600"), "asks to wait 600 seconds")]
    {
        let busy = EngineSettings { busy: u64::MAX, retry_after, ..settings(&[]) };
        let (folder, result) = judge(&MockEngine::start(busy), &["--max-outage", "1"]);
        assert_eq!(result.exit_code, 4, "{}", result.stderr);
        assert!(result.stderr.contains(part), "{}", result.stderr);
        assert!(result.stderr.contains("--max-outage"), "{}", result.stderr);
        assert!(!folder.path("out").exists());
    }
}

#[test]
fn wrong_addresses_and_empty_servers_name_the_next_step() {
    for (flaws, parts) in [
        (&[EngineFlaw::HasNoModels][..], &["has no models", "load judge on the server"][..]),
        (
            &[EngineFlaw::Redirects],
            &["redirects to https://elsewhere.example/v1", "pass the URL of the server itself"],
        ),
    ] {
        let (_, result) = judge(&MockEngine::start(settings(flaws)), &[]);
        assert_eq!(result.exit_code, 2);
        for part in parts {
            assert!(result.stderr.contains(part), "{part}: {}", result.stderr);
        }
    }
    let engine = MockEngine::start(settings(&[]));
    for path in ["/chat/completions", "/.."] {
        let folder = Folder::with_cases(1);
        let url = format!("{}{path}", engine.url);
        let result = super::judge(&folder, "out", &["--panel", &url, "--model", "judge"]);
        assert_eq!(result.exit_code, 2, "{path}: {}", result.stderr);
        assert!(result.stderr.contains(&format!("such as {}", engine.url)), "{}", result.stderr);
    }
}

#[test]
fn unlisted_adapter_of_sglang_is_refused() {
    let sglang = EngineSettings { owner: "sglang", models: &["base", "known"], ..settings(&[]) };
    let engine = MockEngine::start(sglang);
    let folder = Folder::with_cases(1);
    let judge =
        |model: &str| super::judge(&folder, "out", &["--panel", &engine.url, "--model", model]);
    let refused = judge("base:other");
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("one of base, base:known"), "{}", refused.stderr);
    assert_eq!(judge("base:known").exit_code, 0);
    assert_eq!(folder.manifest("out")["servers"][0]["is_model_verified"], true);
}

#[test]
fn only_sglang_names_adapters_after_their_base() {
    let engine = MockEngine::start(settings(&[]));
    let folder = Folder::with_cases(1);
    let refused = super::judge(&folder, "out", &["--panel", &engine.url, "--model", "judge:70b"]);
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("no model judge:70b"), "{}", refused.stderr);
}

#[test]
fn names_of_models_belong_to_the_url_or_to_the_file() {
    let engine = MockEngine::start(settings(&[]));
    let folder = Folder::with_cases(1);
    let names = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let members = names.map(|name| format!("{name} = {{ model = \"judge\" }}")).join("\n");
    folder.write(
        "four.toml",
        &format!("schema = 1\nendpoint = \"{}\"\n[members]\n{members}\n", engine.url),
    );
    let refused = super::judge(&folder, "out", &["--panel", "four.toml", "--model", "other"]);
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("--model other: four.toml names"), "{}", refused.stderr);
}

#[test]
fn flags_for_the_other_kind_of_panel_are_named() {
    let engine = MockEngine::start(settings(&[]));
    let folder = Folder::with_cases(1);
    let served = ["--panel", &engine.url, "--model", "judge", "--device", "cpu", "--memory", "1G"];
    let noted = super::judge(&folder, "out", &served);
    assert_eq!(noted.exit_code, 0, "{}", noted.stderr);
    let note = "note: --device and --memory have no effect: servers run all members";
    assert!(noted.stderr.contains(note), "{}", noted.stderr);
    let local = ["--panel", "scripted:seed=1", "--concurrency", "8"];
    let noted = super::judge(&folder, "local", &local);
    assert!(noted.stderr.contains("--concurrency has no effect"), "{}", noted.stderr);
}

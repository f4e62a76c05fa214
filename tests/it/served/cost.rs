//! Estimates before a run, and its largest cost.

use serde_json::Value;

use super::mock_engine::{EngineFlaw, EngineSettings, MockEngine};
use crate::folder::Folder;

#[test]
fn dry_run_estimates_requests_and_cost_and_writes_nothing() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(50);
    let flags = ["--panel", &engine.url, "--model", "judge", "--dry-run", "--price", "2,10"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stdout.contains("verdicts  50 on 50 cases"), "{}", result.stdout);
    assert!(result.stdout.contains("requests  400"), "{}", result.stdout);
    assert!(!folder.path("out").exists());
    assert_eq!(engine.requests(), 3 * 8 + 4);
    let json = super::judge(&folder, "out", &[&flags[..], &["--format", "json"]].concat()).stdout;
    let estimate: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(estimate["requests"], 400);
    assert_eq!(estimate["prompt_tokens"], 400 * 36, "20 of the text and 16 of the image");
    let written = estimate["written_tokens"].as_f64().unwrap();
    let cost = (400.0 * 36.0 * 2.0 + written * 10.0) / 1e6;
    assert!((estimate["cost"].as_f64().unwrap() - cost).abs() < 1e-9);
    assert!(estimate["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn run_stops_at_its_largest_cost_and_resumes() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(40);
    let flags = ["--panel", &engine.url, "--model", "judge", "--concurrency", "2"];
    assert_eq!(super::judge(&folder, "whole", &flags).exit_code, 0);
    // A million tokens of prompts cost a million: ten cases have 10 * 8 * 36 tokens.
    let limited = [&flags[..], &["--price", "1000000,0", "--max-cost", "2880"]].concat();
    let result = super::judge(&folder, "out", &limited);
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    assert!(result.stderr.contains("--max-cost 2880"), "{}", result.stderr);
    let judged = folder.records("out").len();
    assert!((7..=10).contains(&judged), "{judged}");
    assert_eq!(folder.manifest("out")["status"], "failed");
    let tokens = folder.manifest("out")["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!(tokens <= 2880, "{tokens}");
    // The same limit again: the requests of the first command count.
    let result = super::judge(&folder, "out", &limited);
    assert_eq!(result.exit_code, 4, "{}", result.stderr);
    assert!(folder.manifest("out")["usage"]["prompt_tokens"].as_u64().unwrap() <= 2880);
    assert!(folder.records("out").len() <= 10);
    let priced = super::judge(&folder, "out", &[&flags[..], &["--price", "1000000,0"]].concat());
    assert_eq!(priced.exit_code, 0, "{}", priced.stderr);
    assert!(
        priced.stderr.contains("cost of the run: 11520.00 for 320 requests"),
        "{}",
        priced.stderr
    );
    assert_eq!(folder.read("out/records.jsonl"), folder.read("whole/records.jsonl"));
    // Each case needs eight requests, once.
    assert_eq!(
        folder.manifest("out")["usage"]["requests"],
        folder.manifest("whole")["usage"]["requests"]
    );
}

#[test]
fn merged_shards_state_all_requests() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(5);
    let flags = ["--panel", &engine.url, "--model", "judge"];
    assert_eq!(super::judge(&folder, "whole", &flags).exit_code, 0);
    for (out, shard) in [("first", "1/2"), ("second", "2/2")] {
        let result = super::judge(&folder, out, &[&flags[..], &["--shard", shard]].concat());
        assert_eq!(result.exit_code, 0, "{}", result.stderr);
    }
    let merged = folder.run(&["merge", "first", "second", "--out", "merged"]);
    assert_eq!(merged.exit_code, 0, "{}", merged.stderr);
    assert_eq!(folder.manifest("merged")["usage"], folder.manifest("whole")["usage"]);
}

#[test]
fn cost_of_a_server_that_states_no_tokens_is_unknown() {
    let flaws = &[EngineFlaw::StatesNoTokens];
    let engine =
        MockEngine::start(EngineSettings { owner: "other", flaws, ..EngineSettings::default() });
    let folder = Folder::with_cases(3);
    let flags = ["--panel", &engine.url, "--model", "judge", "--price", "2,10"];
    let refused = super::judge(&folder, "out", &[&flags[..], &["--max-cost", "1"]].concat());
    assert_eq!(refused.exit_code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("states no tokens"), "{}", refused.stderr);
    let texts = ["--dry-run", "--text-only"];
    let estimate = super::judge(&folder, "out", &[&flags[..], &texts].concat());
    assert!(estimate.stdout.contains("tokens    unknown"), "{}", estimate.stdout);
    assert!(!estimate.stdout.contains("0.00"), "{}", estimate.stdout);
    // Whether it sees images is unknown too: only the number of tokens shows it.
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 2, "{}", result.stderr);
    assert!(result.stderr.contains("whether it sees images is unknown"), "{}", result.stderr);
    assert!(!result.stderr.contains("data check"), "{}", result.stderr);
    let result = super::judge(&folder, "texts", &[&flags[..], &["--text-only"]].concat());
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert_eq!(folder.manifest("texts")["servers"][0]["states_tokens"], false);
}

#[test]
fn estimate_is_compared_with_the_limit_and_needs_a_result() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(5);
    let flags = ["--panel", &engine.url, "--model", "judge", "--dry-run", "--price", "1,1"];
    for (max_cost, part) in [("0.0001", "more than --max-cost"), ("5", "within --max-cost")] {
        let result =
            super::judge(&folder, "out", &[&flags[..], &["--max-cost", max_cost]].concat());
        assert_eq!(result.exit_code, 0, "{}", result.stderr);
        assert!(result.stdout.contains(part), "{}", result.stdout);
        assert!(!result.stdout.contains(" 0.00,"), "{}", result.stdout);
        assert!(result.stderr.contains("; repeatable"), "{}", result.stderr);
    }
    let flaws = &[EngineFlaw::Fails];
    let broken =
        MockEngine::start(EngineSettings { owner: "vllm", flaws, ..EngineSettings::default() });
    let flags = ["--panel", &broken.url, "--model", "judge", "--dry-run", "--price", "1,1"];
    let json = super::judge(&folder, "out", &[&flags[..], &["--format", "json"]].concat());
    assert_eq!(json.exit_code, 3, "{}", json.stderr);
    let estimate: Value = serde_json::from_str(&json.stdout).unwrap();
    for field in ["requests", "prompt_tokens", "cost", "seconds"] {
        assert!(estimate[field].is_null(), "{field}: {estimate}");
    }
    assert!(estimate["unscored"].is_string(), "{estimate}");
}

#[test]
fn tokens_that_vanish_are_told() {
    let flaws = &[EngineFlaw::HidesTokensLater];
    let engine =
        MockEngine::start(EngineSettings { owner: "vllm", flaws, ..EngineSettings::default() });
    let folder = Folder::with_cases(1);
    let flags = ["--panel", &engine.url, "--model", "judge", "--price", "1,1", "--max-cost", "5"];
    let result = super::judge(&folder, "out", &flags);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stderr.contains("no tokens for 8 requests"), "{}", result.stderr);
    let other =
        MockEngine::start(EngineSettings { owner: "vllm", flaws, ..EngineSettings::default() });
    let flags = [
        "--panel",
        &other.url,
        "--model",
        "judge",
        "--price",
        "1,1",
        "--max-cost",
        "5",
        "--dry-run",
    ];
    let estimate = super::judge(&folder, "none", &flags);
    assert_eq!(estimate.exit_code, 0, "{}", estimate.stderr);
    assert!(estimate.stdout.contains("tokens    unknown"), "{}", estimate.stdout);
    assert!(!estimate.stdout.contains("cost   "), "{}", estimate.stdout);
}

#[test]
fn other_commands_stop_at_the_largest_cost_too() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(6);
    let flags = ["--panel", &engine.url, "--model", "judge", "--concurrency", "1"];
    assert_eq!(super::judge(&folder, "out", &flags).exit_code, 0);
    let limit = ["--price", "1000000,0", "--max-cost", "300"];
    for command in [&["audit", "cases"][..], &["verify", "out"]] {
        let before = engine.requests();
        let result = folder.run(&[command, &flags[..], &limit].concat());
        assert_eq!(result.exit_code, 4, "{command:?}: {}", result.stderr);
        assert!(result.stderr.contains("--max-cost 300"), "{}", result.stderr);
        // The handshake, and the case that shows the cost.
        assert!(engine.requests() - before <= 4 + 2 * 8, "{command:?}");
    }
}

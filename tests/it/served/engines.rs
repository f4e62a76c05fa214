//! The interfaces of the engines, and the handshake.

use serde_json::{Value, json};

use super::mock_engine::{EngineFlaw, EngineSettings, MockEngine};
use crate::folder::{Folder, ProgramOutput, valid_case};

fn judge(folder: &Folder, engine: &MockEngine, out: &str, flags: &[&str]) -> ProgramOutput {
    let mut arguments = vec!["--panel", &engine.url, "--model", "judge"];
    arguments.extend(flags);
    super::judge(folder, out, &arguments)
}

#[test]
fn every_engine_gives_verdicts_in_every_form() {
    for (owner, flag) in [
        ("vllm", None),
        ("sglang", None),
        ("llamacpp", None),
        ("someone", None),
        ("someone", Some("sglang")),
    ] {
        let engine = MockEngine::start(EngineSettings { owner, ..EngineSettings::default() });
        for form in ["pair", "single", "list", "correctness"] {
            let folder = Folder::with_cases(3);
            let cases: Vec<Value> = (0..3)
                .map(|i| {
                    let mut case = valid_case(i);
                    case["reference"] = json!("a shadow");
                    case
                })
                .collect();
            folder.write_cases(&cases);
            let mut flags = vec!["--form", form];
            flags.extend(flag.iter().flat_map(|engine| ["--engine", engine]));
            let result = judge(&folder, &engine, "out", &flags);
            assert_eq!(result.exit_code, 0, "{owner} {form}: {}", result.stderr);
            for record in folder.records("out") {
                assert_eq!(record["status"], "judged", "{record}");
                assert_eq!(record["reproducible"], false);
                let conclusion = &record["orders"][0]["conclusion"];
                let sum: f64 = conclusion["probabilities"][0]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|p| p.as_f64().unwrap())
                    .sum();
                assert!((sum - 1.0).abs() < 1e-3, "{conclusion}");
                assert!(conclusion["partial"].is_null(), "{conclusion}");
                assert!(conclusion["analyses"][0].as_str().unwrap().ends_with('.'));
            }
        }
    }
}

#[test]
fn verdict_has_the_scores_and_probabilities_of_the_server() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(2);
    engine.keep_bodies();
    assert_eq!(judge(&folder, &engine, "out", &["--single-order"]).exit_code, 0);
    let records = folder.records("out");
    let order = &records[0]["orders"][0];
    let score = order["conclusion"]["scores"][0].as_u64().unwrap() as usize;
    let probabilities = order["conclusion"]["probabilities"][0].as_array().unwrap();
    for (i, probability) in probabilities.iter().enumerate() {
        let expected = if i == score { 0.75 } else { 0.05 };
        assert!((probability.as_f64().unwrap() - expected).abs() < 1e-3, "{order}");
    }
    assert_eq!(order["aspects"].as_object().unwrap().len(), 3);
    let bodies = engine.bodies();
    let evaluations: Vec<&Value> =
        bodies.iter().filter(|b| b["messages"].to_string().contains("Response 1")).collect();
    assert_eq!(evaluations.len(), 8, "two cases with four members each");
    for body in evaluations {
        assert_eq!(body["temperature"], 0);
        assert_eq!(body["repetition_penalty"], 1.0);
        assert!(body["structured_outputs"]["regex"].as_str().unwrap().starts_with("Response 1:"));
        assert!(body["messages"].to_string().contains("data:image/png;base64,"));
    }
}

#[test]
fn run_states_what_the_handshake_found() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(1);
    assert_eq!(judge(&folder, &engine, "out", &[]).exit_code, 0);
    let server = &folder.manifest("out")["servers"][0];
    assert_eq!(server["engine"], "vllm");
    assert_eq!(server["version"], "0.32.0");
    assert_eq!(server["logprobs"], "masked");
    assert_eq!(server["image_tokens"], 16);
    assert_eq!(server["repeatable"], true);
}

/// SGLang answers with the base if a request has the name of an adapter alone.
#[test]
fn adapters_of_sglang_need_the_name_of_their_base() {
    let engine = MockEngine::start(EngineSettings {
        owner: "sglang",
        models: &["base", "expression"],
        ..EngineSettings::default()
    });
    let folder = Folder::with_cases(1);
    let judge = |out: &str, model: &str| {
        super::judge(&folder, out, &["--panel", &engine.url, "--model", model])
    };
    let alone = judge("alone", "expression");
    assert_eq!(alone.exit_code, 2);
    assert!(alone.stderr.contains("SGLang answers with base"), "{}", alone.stderr);
    assert!(alone.stderr.contains("hint: name the model base:expression"), "{}", alone.stderr);
    let flags = ["--panel", &engine.url, "--model", "expression", "--engine", "openai"];
    assert_eq!(super::judge(&folder, "openai", &flags).exit_code, 2);
    for (out, model) in [("base", "base"), ("adapter", "base:expression")] {
        let result = judge(out, model);
        assert_eq!(result.exit_code, 0, "{}", result.stderr);
        let server = &folder.manifest(out)["servers"][0];
        assert_eq!((&server["engine"], &server["version"]), (&json!("sglang"), &json!("0.5.23")));
    }
}

#[test]
fn unsuitable_servers_are_refused_before_the_first_case() {
    let folder = Folder::with_cases(2);
    let ignoring = MockEngine::start(EngineSettings {
        owner: "vllm",
        flaws: &[EngineFlaw::IgnoresConstraint],
        ..EngineSettings::default()
    });
    let result = judge(&folder, &ignoring, "out", &[]);
    assert_eq!(result.exit_code, 2, "{}", result.stderr);
    assert!(result.stderr.contains("ignores the constraint"), "{}", result.stderr);
    assert!(result.stderr.contains("Yes, it looks fine to me."), "{}", result.stderr);
    let unknown =
        super::judge(&folder, "out", &["--panel", &ignoring.url, "--model", "gpt-nothing"]);
    assert_eq!(unknown.exit_code, 2);
    assert!(unknown.stderr.contains("has no model gpt-nothing"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("one of judge"), "{}", unknown.stderr);
    let nobody =
        super::judge(&folder, "out", &["--panel", "http://127.0.0.1:9/v1", "--model", "judge"]);
    assert_eq!(nobody.exit_code, 4, "it may start later");
    assert!(nobody.stderr.contains("http://127.0.0.1:9/v1"), "{}", nobody.stderr);
    let unnamed = super::judge(&folder, "out", &["--panel", &ignoring.url]);
    assert!(unnamed.stderr.contains("--model"), "{}", unnamed.stderr);
    assert!(!folder.path("out").exists());
}

#[test]
fn model_that_does_not_see_images_judges_texts_only_if_told_to() {
    let blind = MockEngine::start(EngineSettings {
        owner: "llamacpp",
        flaws: &[EngineFlaw::DropsImages],
        ..EngineSettings::default()
    });
    let folder = Folder::with_cases(2);
    let result = judge(&folder, &blind, "out", &[]);
    assert_eq!(result.exit_code, 2, "{}", result.stderr);
    assert!(result.stderr.contains("does not see images"), "{}", result.stderr);
    blind.keep_bodies();
    let result = judge(&folder, &blind, "text", &["--text-only"]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let evaluations = blind.bodies().into_iter().map(|body| body["messages"].to_string());
    let evaluations: Vec<String> = evaluations.filter(|body| body.contains("Response 1")).collect();
    assert_eq!(evaluations.len(), 16);
    assert!(evaluations.iter().all(|body| !body.contains("data:image")));
}

#[test]
fn host_without_probabilities_gives_scores_marked_as_partial() {
    let engine = MockEngine::start(EngineSettings {
        owner: "someone",
        flaws: &[EngineFlaw::HasNoLogprobs],
        ..EngineSettings::default()
    });
    let folder = Folder::with_cases(1);
    assert_eq!(judge(&folder, &engine, "out", &[]).exit_code, 0);
    let conclusion = &folder.records("out")[0]["orders"][0]["conclusion"];
    assert_eq!(conclusion["partial"], json!([true, true]));
    assert_eq!(conclusion["expected"][0], conclusion["scores"][0].as_f64().unwrap());
}

#[test]
fn label_mass_is_requested_where_a_server_continues_the_start_of_an_answer() {
    let settings = EngineSettings { owner: "vllm", tokenizes: true, ..EngineSettings::default() };
    let engine = MockEngine::start(settings.clone());
    let folder = Folder::with_cases(1);
    let flags = ["--label-mass", "--single-order", "--scores-only"];
    assert_eq!(judge(&folder, &engine, "out", &flags).exit_code, 0);
    assert_eq!(folder.manifest("out")["servers"][0]["continues_prefix"], true);
    let order = &folder.records("out")[0]["orders"][0];
    // The mock gives the word `The` three quarters, and the scores 4 and 5 the rest.
    assert_eq!(order["conclusion"]["label_mass"], json!([0.25, 0.25]));
    let clarity = &order["aspects"]["expression"]["clarity_of_response"];
    assert_eq!(clarity["label_mass"], json!([0.25, 0.25]));
    // Four evaluations with 22 scores, after the handshake.
    assert_eq!(engine.requests(), 4 + 2 + 4 + 22);
    let other = MockEngine::start(EngineSettings { tokenizes: false, ..settings });
    let refused = judge(&folder, &other, "other", &flags);
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("omit --label-mass"), "{}", refused.stderr);
    assert_eq!(judge(&folder, &other, "other", &flags[1..]).exit_code, 0);
    let order = &folder.records("other")[0]["orders"][0];
    assert!(order["conclusion"]["label_mass"].is_null(), "{order}");
}

/// Some servers answer for any name of a model, and repeat it.
#[test]
fn model_that_no_list_names_is_not_verified() {
    let cases: [(&[EngineFlaw], Option<&'static str>, bool, &str); 4] = [
        (&[], None, true, "; repeatable\n"),
        (&[EngineFlaw::ListsNoModels], None, false, "model NOT verified"),
        (&[], Some("judge-2026"), true, "its answers name the model judge-2026"),
        (&[EngineFlaw::ListsNoModels], Some(""), false, "model NOT verified"),
    ];
    for (flaws, answers_as, is_verified, text) in cases {
        let settings = EngineSettings { owner: "someone", flaws, answers_as, ..Default::default() };
        let engine = MockEngine::start(settings);
        let folder = Folder::with_cases(1);
        let result = judge(&folder, &engine, "out", &[]);
        assert_eq!(result.exit_code, 0, "{}", result.stderr);
        assert!(result.stderr.contains(text), "{text}: {}", result.stderr);
        let server = &folder.manifest("out")["servers"][0];
        assert_eq!(server["is_model_verified"], is_verified, "{server}");
        assert_eq!(server["answering_model"].as_str(), answers_as.filter(|name| !name.is_empty()));
    }
}

#[test]
fn change_of_the_model_during_a_run_is_noted() {
    let settings = EngineSettings {
        owner: "someone",
        flaws: &[EngineFlaw::ChangesModelLater],
        ..EngineSettings::default()
    };
    let engine = MockEngine::start(settings);
    let folder = Folder::with_cases(1);
    let result = judge(&folder, &engine, "out", &[]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    let note =
        "some answers name the model other, not judge; the server may have changed its model";
    assert!(result.stderr.contains(note), "{}", result.stderr);
    let others = || folder.manifest("out")["servers"][0]["other_models"].clone();
    assert_eq!(others(), serde_json::json!(["other"]));
    // A command that sends no request keeps what the earlier one found.
    let again = judge(&folder, &engine, "out", &[]);
    assert_eq!(again.exit_code, 0, "{}", again.stderr);
    assert_eq!(others(), serde_json::json!(["other"]));
}

//! Panel files that name served members.

use serde_json::Value;

use super::mock_engine::{EngineSettings, MockEngine};
use crate::folder::Folder;

#[test]
fn members_of_a_file_are_served_under_their_own_names() {
    let engine = MockEngine::start(EngineSettings {
        owner: "vllm",
        models: &["expression", "medical_knowledge", "patient_relevance", "conclusion"],
        ..EngineSettings::default()
    });
    let folder = Folder::with_cases(1);
    let members = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let lines = members.map(|name| format!("{name} = {{ model = \"{name}\" }}"));
    let file = format!(
        "schema = 1\nname = \"served four\"\nendpoint = \"{}\"\nlayout = \"paper\"\nreward_token = \"[Good]\"\n\
         analysis_tokens = 5\n[members]\n{}\n",
        engine.url,
        lines.join("\n")
    );
    folder.write("four.toml", &file);
    engine.keep_bodies();
    let result = super::judge(&folder, "out", &["--panel", "four.toml", "--single-order"]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stdout.contains("served four"), "{}", result.stdout);
    check_prompts(&folder, &engine);
    let bodies: Vec<Value> = engine.bodies();
    let of = |name: &str| {
        let is_evaluation = |b: &&Value| b["messages"].to_string().contains("Response 1");
        bodies.iter().filter(is_evaluation).filter(|b| b["model"] == name).count()
    };
    assert_eq!(members.map(of), [1; 4]);
    let last = bodies.last().unwrap();
    let regex = last["structured_outputs"]["regex"].as_str().unwrap();
    assert!(regex.starts_with("\\[Good\\]Response 1:"), "{regex}");
    assert!(regex.contains("{1,20}"), "{regex}");
}

/// `panel prompts` shows what the server got.
fn check_prompts(folder: &Folder, engine: &MockEngine) {
    let shown = folder
        .run(&["panel", "prompts", "cases", "--panel", "four.toml", "--format", "json"])
        .stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let expert = shown[0]["prompt"].as_str().unwrap();
    let sent: Vec<String> = engine
        .bodies()
        .iter()
        .filter(|body| body["model"] == "expression")
        .map(|body| {
            let parts = body["messages"][0]["content"].as_array().unwrap();
            parts.iter().map(|part| part["text"].as_str().unwrap_or("<image>")).collect()
        })
        .collect();
    assert!(sent.iter().any(|text| text == expert), "{expert}\n{sent:?}");
    assert!(shown[0]["format"].as_str().unwrap().starts_with("[Good]Response 1:"));
    let model = folder.run(&["panel", "prompts", "cases", "--panel", &engine.url]).stdout;
    assert!(model.contains("patient_relevance reads"), "{model}");
}

#[test]
fn malformed_members_are_errors() {
    let folder = Folder::with_cases(1);
    let judge = |members: &str| {
        folder.write("four.toml", &format!("schema = 1\n[members]\n{members}\n"));
        let result = super::judge(&folder, "out", &["--panel", "four.toml"]);
        assert_eq!(result.exit_code, 2);
        result.stderr
    };
    let served = |name: &str| {
        format!("{name} = {{ endpoint = \"http://127.0.0.1:9/v1\", model = \"m\" }}\n")
    };
    let three = ["expression", "medical_knowledge", "patient_relevance"].map(served).concat();
    let error = judge(&format!("{three}conclusion = \"folder\""));
    assert!(error.contains("members.conclusion") && error.contains("no folder"), "{error}");
    let both = "conclusion = { folder = \"folder\", model = \"m\" }";
    let error = judge(&format!("{three}{both}"));
    assert!(error.contains("members.conclusion") && error.contains("folder and model"), "{error}");
    let dialogue = served("conclusion").replace("model", "dialogue = \"vicuna\", model");
    let error = judge(&format!("{three}{dialogue}"));
    assert!(error.contains("dialogue is a setting of checkpoints"), "{error}");
    let error = judge(&format!("{three}conclusion = {{ model = \"m\" }}"));
    assert!(error.contains("members.conclusion") && error.contains("endpoint"), "{error}");
    let error = judge(&format!(
        "{three}{}",
        served("conclusion").replace("model", "engine = \"x\", model")
    ));
    assert!(error.contains("engine is `x`"), "{error}");
    let misspelt = served("conclusion").replace("model", "text_olny = true, model");
    let error = judge(&format!("{three}{misspelt}"));
    assert!(error.contains("unknown field `text_olny`"), "{error}");
    let with_key = served("conclusion").replace("model", "api_key = \"sk-123456\", model");
    let error = judge(&format!("{three}{with_key}"));
    assert!(error.contains("api_key_env") && !error.contains("sk-123456"), "{error}");
}

#[test]
fn numbered_adapters_are_for_llama_cpp() {
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let folder = Folder::with_cases(1);
    let names = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let member = "{ model = \"judge\", adapters = [{ id = 0, scale = 1.0 }] }";
    let members = names.map(|name| format!("{name} = {member}\n")).concat();
    let file = format!("schema = 1\nendpoint = \"{}\"\n[members]\n{members}", engine.url);
    folder.write("four.toml", &file);
    let result = super::judge(&folder, "out", &["--panel", "four.toml"]);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains("adapters are for llama.cpp"), "{}", result.stderr);
}

#[test]
fn flags_of_served_judges_need_a_served_judge() {
    let folder = Folder::with_cases(1);
    for flags in [&["--text-only"][..], &["--model", "m"], &["--label-mass"]] {
        let result = super::judge(&folder, "out", flags);
        assert_eq!(result.exit_code, 2, "{flags:?}");
        assert!(result.stderr.contains("no member of the panel is served"), "{}", result.stderr);
    }
}

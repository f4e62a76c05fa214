//! The program judges with published checkpoints and inspects them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::folder::{Folder, ProgramOutput};

fn asset(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets");
    path.join(name).display().to_string()
}

fn golden(name: &str) -> String {
    asset(&format!("golden/checkpoints/{name}"))
}

/// Judges one phantom in one presentation order, with scores only.
fn judge(folder: &Folder, panel: &str, out: &str) -> ProgramOutput {
    let demo = asset("demo");
    let args = ["judge", &demo, "--out", out, "--panel", panel, "--limit", "1"];
    folder.run(&[&args[..], &["--scores-only", "--single-order"]].concat())
}

fn inspect(folder: &Folder, panel: &str) -> Value {
    let output = folder.run(&["panel", "inspect", panel, "--format", "json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn copy_folder(source: &str, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn checkpoint_folder_judges() {
    let folder = Folder::empty();
    for name in ["llava", "llava-original"] {
        let output = judge(&folder, &golden(name), name);
        assert_eq!(output.exit_code, 0, "{name}: {}", output.stderr);
        let records = folder.records(name);
        assert_eq!(records.len(), 1);
        assert_eq!(records[0]["status"], "judged", "{name}: {}", records[0]);
        assert_eq!(records[0]["criteria"].as_object().unwrap().len(), 10);
    }
    // Weights, tokens and prompts are equal, so the scores are equal in every file layout.
    let orders = |name: &str| folder.records(name)[0]["orders"].clone();
    assert_eq!(orders("llava"), orders("llava-original"));
}

#[test]
fn checkpoint_judges_with_analyses() {
    let folder = Folder::empty();
    let members = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let members = members.map(|m| format!("{m} = {:?}\n", golden("llava"))).concat();
    let panel =
        format!("schema = 1\nrubric = \"names\"\nanalysis_tokens = 3\n[members]\n{members}");
    folder.write("short.toml", &panel);
    let demo = asset("demo");
    let args = ["judge", &demo, "--out", "out", "--panel", "short.toml", "--limit", "1"];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let record = &folder.records("out")[0];
    assert_eq!(record["orders"].as_array().unwrap().len(), 2);
    assert!(output.stdout.contains("judged by short"), "{}", output.stdout);
}

#[test]
fn equal_members_are_stored_once() {
    let folder = Folder::empty();
    let report = inspect(&folder, &golden("llava"));
    assert_eq!(report["trunks"].as_array().unwrap().len(), 1);
    assert_eq!(report["trunks"][0]["shared_layers"], 1);
    let sizes = &report["sizes"];
    let count = |name: &str| sizes[name].as_u64().unwrap();
    assert_eq!(count("parameters"), 4 * count("parameters_shared"));
    assert_eq!(count("bytes_shared"), 2 * count("parameters_shared"));
    assert_eq!(count("bytes_loaded"), 4 * count("parameters_shared"));
    assert_eq!(report["members"][0]["dtypes"], serde_json::json!(["f16"]));
    assert_eq!(report["members"][0]["encoder"]["image_tokens"], 16);

    let llava = golden("llava");
    let mixed = format!(
        "schema = 1\nname = \"mixed\"\n[members]\n\
         expression = {{ folder = {llava:?}, text_only = true, dialogue = \"plain\" }}\n\
         medical_knowledge = {llava:?}\npatient_relevance = {:?}\nconclusion = {llava:?}\n",
        golden("llava-original")
    );
    folder.write("mixed.toml", &mixed);
    let mixed_report = inspect(&folder, "mixed.toml");
    assert!(mixed_report["members"][0]["encoder"].is_null());
    assert_eq!(mixed_report["members"][2]["kind"], "llava_llama");
    // The tensors of both layouts are equal and stored once.
    assert_eq!(mixed_report["sizes"]["parameters_shared"], sizes["parameters_shared"]);
    let output = judge(&folder, "mixed.toml", "mixed");
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert_eq!(folder.records("mixed")[0]["status"], "judged");
    let text = folder.run(&["panel", "inspect", "mixed.toml"]);
    assert!(text.stdout.contains("none (text only)"), "{}", text.stdout);
}

#[test]
fn embedded_panel_is_inspected_by_default() {
    let output = Folder::empty().run(&["panel", "inspect"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(
        output.stdout.contains("panel acem3-mini") && output.stdout.contains("tokenizer"),
        "{}",
        output.stdout
    );
}

#[test]
fn panel_hash_does_not_depend_on_checkpoint_path() {
    let folder = Folder::empty();
    copy_folder(&golden("llava"), &folder.path("moved"));
    let original = inspect(&folder, &golden("llava"));
    assert_eq!(inspect(&folder, "moved")["panel_sha256"], original["panel_sha256"]);
}

#[test]
fn panel_hash_depends_on_reward_tokens() {
    let folder = Folder::empty();
    let members = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let members = members.map(|m| format!("{m} = {:?}\n", golden("llava"))).concat();
    let hash = |setting: &str| {
        folder.write("four.toml", &format!("schema = 1\n{setting}\n[members]\n{members}"));
        inspect(&folder, "four.toml")["panel_sha256"].clone()
    };
    let plain = hash("");
    assert_eq!(hash("reward_token = \"\""), plain);
    assert_ne!(hash("reward_token = \"[Good]\""), plain);
}

#[test]
fn panel_file_may_refer_to_external_tower() {
    let folder = Folder::empty();
    copy_folder(&golden("llava-original"), &folder.path("alone"));
    let output = folder.run(&["panel", "inspect", "alone", "--offline"]);
    assert_eq!(output.exit_code, 2);
    assert!(
        output
            .stderr
            .contains("vision tower `nobody/clip-tiny` not found in the folder or next to it"),
        "{}",
        output.stderr
    );
    let members = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let members = members.map(|m| format!("{m} = \"alone\"\n")).concat();
    let tower = golden("clip-tiny");
    let panel = format!("schema = 1\nvision_tower = {tower:?}\n[members]\n{members}");
    folder.write("panel-of-one.toml", &panel);
    assert_eq!(inspect(&folder, "panel-of-one.toml")["name"], "panel-of-one");
}

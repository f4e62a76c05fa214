//! Trainings that start from an existing model.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use candle::{Device, Tensor};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::panel::spec::PanelSpec;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::stages::files::member_state::is_equal;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};

const STAGE: &str = r#"
name = "tuned"
seed = 5

[[stages]]
name = "know"
kind = "heads"
members = ["medical_knowledge"]
steps = 1
batch = 1
rate = 1e-3
"#;

fn config(start: &str, frozen: usize) -> Result<(TrainConfig, Option<InitialModel>)> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("train.toml");
    std::fs::write(
        &path,
        format!("start = {start:?}\ntrunk_layers = {frozen}\n{STAGE}frozen_layers = {frozen}\n"),
    )?;
    TrainConfig::load(&path, HubDownloads::default())
}

fn golden_checkpoint(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    format!("{root}/assets/golden/checkpoints/{name}")
}

fn load_error(start: &str) -> String {
    format!("{:#}", config(start, 1).map(|_| ()).unwrap_err())
}

/// Returns all weights of a member in a panel's folder.
fn weights(panel: &Path, member: &str) -> HashMap<String, Tensor> {
    let files = [format!("{member}.safetensors"), "trunk.safetensors".to_owned()];
    let load = |file: &String| candle::safetensors::load(panel.join(file), &Device::Cpu);
    files.iter().flat_map(|file| load(file).unwrap()).collect()
}

#[test]
fn training_from_panel_changes_only_trained_layers() {
    let (config, start) = config("embedded", 5).unwrap();
    let out = tempfile::tempdir().unwrap();
    let paths = TrainPaths { out: out.path().to_owned(), data: None, device: Device::Cpu };
    let progress = TrainingProgress::new(true, Interrupt::default());
    assert!(train(&config, start.as_ref(), &paths, &progress).unwrap());
    let (before, after) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini"), out.path().join("panel"));
    for member in MEMBERS {
        let (before, after) = (weights(&before, member), weights(&after, member));
        assert_eq!(before.len(), after.len());
        let changed = before.iter().filter(|(name, tensor)| !is_equal(tensor, &after[*name]));
        let changed: Vec<&String> = changed.map(|(name, _)| name).collect();
        if member == "medical_knowledge" {
            let is_trained = |name: &&String| {
                name.starts_with("model.layers.5.") || *name == "model.norm.weight"
            };
            assert!(!changed.is_empty() && changed.iter().all(is_trained), "{changed:?}");
        } else {
            assert!(changed.is_empty(), "{member}: {changed:?}");
        }
    }
    let text = std::fs::read_to_string(after.join("panel.toml")).unwrap();
    let spec = PanelSpec::parse(&text).unwrap();
    assert_eq!((spec.name.as_str(), spec.model), ("tuned", config.model));
}

#[test]
fn published_checkpoint_sets_model_vocabulary_and_chat_template() {
    let (config, start) = config(&golden_checkpoint("llava-mistral"), 1)
        .map_or_else(|error| panic!("{error:#}"), |(config, start)| (config, start.unwrap()));
    assert_eq!(config.model, start.model);
    assert_eq!(config.vocabulary, 484);
    assert!(config.dialogue.open.contains("[INST]"), "{:?}", config.dialogue);
    let names = start.weights(0).unwrap();
    assert!(names.iter().any(|(name, _)| name == "lm_head.weight"));
}

#[test]
fn unsuitable_initial_models_are_rejected() {
    let text_only = load_error(&golden_checkpoint("mistral"));
    assert!(text_only.contains("the model is a text model\nhint: set `file`"), "{text_only}");
    let gemma = load_error(&golden_checkpoint("gemma3"));
    assert!(gemma.contains("image tokens attend to later ones"), "{gemma}");
    let missing = load_error("/nowhere/at/all");
    assert!(missing.contains("start /nowhere/at/all: no such folder"), "{missing}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train.toml");
    std::fs::write(&path, "start = \"embedded\"\nvocabulary = 7").unwrap();
    let error = TrainConfig::read(&path).map(|_| ()).unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("remove vocabulary"), "{error}");
}

//! Complete trainings of a panel with a tiny model.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acem3_experts::TextTokenizer;
use acem3_experts::train::load_checkpoint;
use acem3_vision::VisionConfig;
use anyhow::Result;
use candle::{Device, Tensor};

use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::panel::spec::TOKENIZER_FILE;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::stages::files::run_folder::claim_folder;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};

mod adapters;
mod bf16;
mod dataset_pairs;
mod evaluation_file;
mod failures;
mod frozen_cache;
mod initial_model;
mod joined_members;
mod mean_weights;
mod own_evaluations;
mod preferences;
mod preflight;
mod reward_tokens;

const CONFIG: &str = concat!(
    include_str!("../../../../tests/tiny.toml"),
    r#"
[[stages]]
name = "sft"
kind = "sft"
steps = 2
batch = 2
rate = 1e-3
warmup = 1

[[stages]]
name = "prefer"
kind = "rtdpo"
members = ["medical_knowledge", "conclusion"]
steps = 8
batch = 2
rate = 1e-2
warmup = 1
frozen_layers = 1
validate_every = 3
[stages.preferences]
cases = 3
store = "f32"
"#
);

/// A joint stage after these, which hardly changes the weights that it begins with.
const JOINED: &str = r#"
[[stages]]
name = "joined"
kind = "sft"
steps = 1
batch = 2
rate = 1e-12
warmup = 1
from = "medical_knowledge"
"#;

/// Configuration that adds adapters to the last stage.
const LORA: &str = "[stages.lora]\nrank = 2\nalpha = 4.0\n";

fn config() -> TrainConfig {
    toml::from_str(CONFIG).unwrap()
}

fn config_with_adapters() -> TrainConfig {
    toml::from_str(&format!("{CONFIG}{LORA}")).unwrap()
}

/// Returns the path of a file of the embedded panel.
fn embedded_panel_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini").join(name)
}

fn tokenizer() -> TextTokenizer {
    TextTokenizer::parse(&std::fs::read(embedded_panel_file(TOKENIZER_FILE)).unwrap()).unwrap()
}

fn sequence_builder(config: &TrainConfig) -> SequenceBuilder {
    SequenceBuilder::new(config, tokenizer()).unwrap()
}

/// Trains in a folder. Returns false if interrupted.
fn run(config: &TrainConfig, out: &Path, interrupt: &Interrupt) -> Result<bool> {
    let paths = TrainPaths { out: out.to_owned(), data: None, device: Device::Cpu };
    let progress = TrainingProgress::new(true, interrupt.clone());
    train(config, None, &paths, &progress)
}

/// Runs a training to its end.
fn run_to_end(config: &TrainConfig, out: &Path) {
    assert!(run(config, out, &Interrupt::default()).unwrap());
}

/// Creates the output folder of a training with the tokenizer of the embedded panel.
fn prepare(config: &TrainConfig, out: &Path) {
    drop(claim_folder(config, out).unwrap());
    std::fs::copy(embedded_panel_file(TOKENIZER_FILE), out.join(TOKENIZER_FILE)).unwrap();
}

/// Reads a file of the panel in an output folder.
fn panel_file(out: &Path, name: &str) -> Vec<u8> {
    std::fs::read(out.join("panel").join(name)).unwrap()
}

/// Reads a checkpoint in an output folder.
fn checkpoint(out: &Path, name: &str) -> HashMap<String, Tensor> {
    let tensors = load_checkpoint(&out.join(name), None).unwrap();
    tensors.into_iter().collect()
}

/// Returns the largest difference between values of decoder layers.
fn largest_difference(a: &HashMap<String, Tensor>, b: &HashMap<String, Tensor>) -> f32 {
    let layers = a.iter().filter(|(name, _)| name.starts_with("model.layers."));
    let differences = layers.map(|(name, tensor)| {
        let difference = (tensor - &b[name]).unwrap().abs().unwrap();
        difference.flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap()
    });
    differences.fold(0.0, f32::max)
}

/// Output folders of an uninterrupted and an interrupted training.
struct TrainedTwice {
    uninterrupted: PathBuf,
    interrupted: PathBuf,
}

/// Trains without and with an interruption and checks that the panels are equal.
fn train_twice(config: &TrainConfig, dir: &Path) -> TrainedTwice {
    let (uninterrupted, interrupted) = (dir.join("uninterrupted"), dir.join("interrupted"));
    prepare(config, &uninterrupted);
    prepare(config, &interrupted);
    run_to_end(config, &uninterrupted);
    let interrupt = Interrupt::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let cache_index = interrupted.join("prefer.rows.json");
            while !cache_index.exists() && !interrupted.join("panel").exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            interrupt.request();
        });
        run(config, &interrupted, &interrupt).unwrap();
    });
    run_to_end(config, &interrupted);
    let files = MEMBERS.map(|member| format!("{member}.safetensors"));
    let files = files.iter().map(String::as_str);
    for file in files.chain(["trunk.safetensors"]) {
        let (a, b) = (panel_file(&uninterrupted, file), panel_file(&interrupted, file));
        assert!(a == b, "{file}");
    }
    TrainedTwice { uninterrupted, interrupted }
}

/// Prepares a training with one small supervised stage.
fn supervised(learning_rate: f64, out: &Path) -> TrainConfig {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/recipes/mini_with_preferences.toml");
    let mut config = TrainConfig::read(&path).unwrap();
    config.stages.drain(..2);
    config.stages.truncate(1);
    let stage = &mut config.stages[0];
    (stage.steps, stage.batch, stage.warmup) = (2, 1, 0);
    stage.learning_rate = learning_rate;
    config.trunk_layers = 1;
    let decoder = &mut config.model.decoder;
    (decoder.num_hidden_layers, decoder.intermediate_size) = (2, 8);
    config.model.vision =
        VisionConfig { num_hidden_layers: 1, intermediate_size: 8, ..config.model.vision };
    prepare(&config, out);
    config
}

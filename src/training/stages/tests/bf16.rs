//! Trainings in bf16.

use std::path::Path;

use candle::{DType, Tensor};

use super::{CONFIG, LORA, checkpoint, config, prepare, run_to_end, train_twice};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::judging::panel::{Panel, PanelOptions};
use crate::support::device::Placement;
use crate::training::TrainConfig;
use crate::training::stages::files::member_state::is_equal;

fn bf16_config(text: &str) -> TrainConfig {
    toml::from_str(&format!("dtype = \"bf16\"\nrecompute = true\n{text}")).unwrap()
}

fn round_to_bf16(tensor: &Tensor) -> Tensor {
    let rounded = tensor.to_dtype(DType::BF16).unwrap();
    rounded.to_dtype(tensor.dtype()).unwrap()
}

/// Interrupted and uninterrupted trainings have equal checkpoints. Frozen weights are unchanged,
/// trained weights are not rounded to bf16, and the panel can be loaded.
#[test]
fn bf16_training_writes_single_precision() {
    let dir = tempfile::tempdir().unwrap();
    let folders = train_twice(&bf16_config(CONFIG), dir.path());
    let (out, interrupted) = (&folders.uninterrupted, &folders.interrupted);
    let before = checkpoint(out, "sft.safetensors");
    for member in ["medical_knowledge", "conclusion"] {
        let file = format!("prefer.{member}.safetensors");
        let bytes = |folder: &Path| std::fs::read(folder.join(&file)).unwrap();
        assert!(bytes(out) == bytes(interrupted), "{file}");
        let after = checkpoint(out, &file);
        assert_eq!(after.len(), before.len());
        for (name, tensor) in &after {
            assert_eq!(tensor.dtype(), DType::F32, "{name}");
            let frozen_prefixes = ["model.layers.0.", "model.embed_", "model.vision", "model.mm_"];
            let is_frozen = frozen_prefixes.iter().any(|prefix| name.starts_with(prefix));
            assert_eq!(is_equal(tensor, &before[name]), is_frozen, "{name}");
            if tensor.rank() == 2 {
                assert!(!is_equal(tensor, &round_to_bf16(tensor)), "{name} is rounded");
            }
        }
    }
    let files = PanelFiles::Folder(out.join("panel"));
    Panel::load(&files, PanelOptions::default(), &Placement::cpu(), HubDownloads::default())
        .unwrap();
    // A training in single precision has nearly the same loss.
    let single = dir.path().join("single");
    prepare(&config(), &single);
    run_to_end(&config(), &single);
    let loss = |out: &Path| {
        let text = std::fs::read_to_string(out.join("prefer.conclusion.metrics.jsonl")).unwrap();
        let last = text.lines().rfind(|l| l.contains("validation_loss")).unwrap();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        last["validation_loss"].as_f64().unwrap()
    };
    let (bf16, f32) = (loss(out), loss(&single));
    let difference = (bf16 - f32).abs();
    assert!(difference > 0.0 && difference < 0.05 * f32, "{bf16} {f32}");
}

/// Adapters are added to the exact weights, not to the rounded copies of training.
#[test]
fn bf16_adapters_are_merged_into_exact_weights() {
    let dir = tempfile::tempdir().unwrap();
    let config = bf16_config(&format!("{CONFIG}{LORA}"));
    let out = train_twice(&config, dir.path()).uninterrupted;
    let before = checkpoint(&out, "sft.safetensors");
    let after = checkpoint(&out, "prefer.conclusion.safetensors");
    let name = "model.layers.2.mlp.down_proj.weight";
    let change = (&after[name] - &before[name]).unwrap();
    let rounding = (round_to_bf16(&before[name]) - &before[name]).unwrap();
    let largest = |t: &Tensor| t.abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
    assert!(largest(&change) > 0.0);
    // The adapters have rank 2, so a third row of the change depends on the others; rounding errors
    // do not.
    let independence = |t: &Tensor| {
        let rows: Vec<Vec<f32>> = t.narrow(0, 0, 3).unwrap().to_vec2().unwrap();
        last_residual(&rows) / largest(t)
    };
    assert!(independence(&change) < 1e-2 && independence(&rounding) > 0.1);
}

/// Returns the largest value of the last row after Gram–Schmidt orthogonalisation.
fn last_residual(rows: &[Vec<f32>]) -> f32 {
    let mut rows = rows.to_vec();
    for i in 0..rows.len() {
        let (done, rest) = rows.split_at_mut(i + 1);
        let current = &done[i];
        let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        for row in rest {
            let factor = dot(current, row) / dot(current, current);
            row.iter_mut().zip(current).for_each(|(v, c)| *v -= factor * c);
        }
    }
    let last = rows.last().unwrap();
    last.iter().fold(0f32, |max, v| max.max(v.abs()))
}

#[test]
fn default_dtype_is_not_written() {
    let text = toml::to_string(&config()).unwrap();
    assert!(!text.contains("dtype"), "{text}");
    let text = toml::to_string(&bf16_config(CONFIG)).unwrap();
    assert!(text.contains("dtype = \"bf16\""), "{text}");
    let other = toml::from_str::<TrainConfig>(&format!("dtype = \"f16\"\n{CONFIG}"));
    let error = other.unwrap_err().to_string();
    assert!(error.contains("`f32` or `bf16`"), "{error}");
}

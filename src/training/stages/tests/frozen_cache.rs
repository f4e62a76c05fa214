//! Trainings have the same losses with and without a frozen-activation cache.

use std::path::Path;

use super::evaluation_file::write_evaluations;
use super::{config, prepare, run_to_end, supervised};
use crate::training::{ActivationDtype, Curriculum, EvaluationConfig, TrainConfig};

/// Trains and returns the training and validation losses of a stage.
fn train_losses(config: &TrainConfig, out: &Path, stage: &str) -> Vec<f64> {
    prepare(config, out);
    run_to_end(config, out);
    let metrics = std::fs::read_to_string(out.join(format!("{stage}.metrics.jsonl"))).unwrap();
    let lines = metrics.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let loss = line.get("loss").or(line.get("validation_loss"));
        loss.unwrap().as_f64().unwrap()
    });
    lines.collect()
}

fn assert_close(cached: &[f64], computed: &[f64]) {
    assert_eq!(cached.len(), computed.len());
    assert!(cached.len() >= 20, "{cached:?}");
    for (a, b) in cached.iter().zip(computed) {
        assert!((a - b).abs() < 1e-4, "{cached:?}\n{computed:?}");
    }
    let mut steps = cached.windows(2);
    let has_changes = steps.any(|pair| (pair[0] - pair[1]).abs() > 1e-3);
    assert!(has_changes, "the loss does not change: {cached:?}");
}

#[test]
fn preference_losses_do_not_depend_on_cache() {
    let dir = tempfile::tempdir().unwrap();
    let mut cached = config();
    let stage = &mut cached.stages[1];
    (stage.steps, stage.validate_every) = (10, Some(1));
    let mut computed = cached.clone();
    // The same weights are frozen, but the names do not cover the whole vision tower, so nothing is
    // cached.
    computed.stages[1].frozen_layers = None;
    computed.stages[1].frozen = [
        "model.vision_tower.vision_model.",
        "model.mm_projector.",
        "model.embed_tokens.",
        "model.layers.0.",
    ]
    .map(str::to_owned)
    .to_vec();
    let layers = cached.model.decoder.num_hidden_layers;
    let cached_layers =
        |config: &TrainConfig| config.stages[1].frozen_part(layers).decoder_layers();
    assert_eq!(cached_layers(&cached), 1);
    assert_eq!(cached_layers(&computed), 0);
    let stage = "prefer.medical_knowledge";
    assert_close(
        &train_losses(&cached, &dir.path().join("cached"), stage),
        &train_losses(&computed, &dir.path().join("computed"), stage),
    );
}

#[test]
fn evaluation_losses_do_not_depend_on_cache() {
    let dir = tempfile::tempdir().unwrap();
    let file = write_evaluations(dir.path());
    let train = |cache_dtype: Option<ActivationDtype>, frozen: &[&str], name: &str| {
        let out = dir.path().join(name);
        let mut config = supervised(3e-3, &out);
        let stage = &mut config.stages[0];
        (stage.steps, stage.validate_every) = (10, Some(1));
        stage.frozen = frozen.iter().map(|name| (*name).to_owned()).collect();
        stage.evaluations = Some(EvaluationConfig {
            strips_questions: false,
            file: file.clone(),
            curriculum: Curriculum::None,
            cache_dtype,
        });
        let losses = train_losses(&config, &out, "sft");
        assert!(!out.join("sft.rows").exists(), "the cache is removed");
        losses
    };
    let tower = ["model.vision_tower."];
    let trunk =
        ["model.vision_tower.", "model.mm_projector.", "model.embed_tokens.", "model.layers.0."];
    for (frozen, name) in [(&tower[..], "features"), (&trunk, "trunk")] {
        let cached = train(Some(ActivationDtype::F32), frozen, &format!("{name}-cached"));
        assert_close(&cached, &train(None, frozen, name));
    }
}

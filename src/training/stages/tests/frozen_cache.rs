//! A training that computes its frozen part once is the one that computes it in every step.

use std::path::Path;

use super::{config, prepared, run, supervised};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::stages::tests::evaluation_file::plan;
use crate::training::{ActivationDtype, EvaluationConfig, TrainConfig};

/// The losses of a stage, step by step, with those of the validations.
fn losses(config: &TrainConfig, out: &Path, stage: &str) -> Vec<f64> {
    prepared(config, out);
    assert!(run(config, out, &Interrupt::default()).unwrap());
    let metrics = std::fs::read_to_string(out.join(format!("{stage}.metrics.jsonl"))).unwrap();
    let lines = metrics.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let loss = line.get("loss").or(line.get("validation_loss"));
        loss.unwrap().as_f64().unwrap()
    });
    lines.collect()
}

fn assert_close(kept: &[f64], computed: &[f64]) {
    assert_eq!(kept.len(), computed.len());
    assert!(kept.len() >= 20, "{kept:?}");
    for (a, b) in kept.iter().zip(computed) {
        assert!((a - b).abs() < 1e-4, "{kept:?}\n{computed:?}");
    }
    let moved = kept.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1e-3);
    assert!(moved, "nothing was learned: {kept:?}");
}

#[test]
fn preferences_are_learned_alike_from_what_is_kept_in_f32() {
    let dir = tempfile::tempdir().unwrap();
    let mut kept = config();
    let stage = &mut kept.stages[1];
    (stage.steps, stage.validate_every) = (10, Some(1));
    let mut computed = kept.clone();
    // The same weights by names that leave the tower's name open, behind which something might lie that is trained.
    computed.stages[1].frozen_layers = None;
    computed.stages[1].frozen = [
        "model.vision_tower.vision_model.",
        "model.mm_projector.",
        "model.embed_tokens.",
        "model.layers.0.",
    ]
    .map(str::to_owned)
    .to_vec();
    let layers = kept.model.decoder.num_hidden_layers;
    assert_eq!(kept.stages[1].frozen_part(layers).decoder_layers(), 1);
    assert_eq!(computed.stages[1].frozen_part(layers).decoder_layers(), 0);
    let stage = "prefer.medical_knowledge";
    assert_close(
        &losses(&kept, &dir.path().join("kept"), stage),
        &losses(&computed, &dir.path().join("computed"), stage),
    );
}

#[test]
fn evaluations_are_learned_alike_from_what_is_kept_in_f32() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path());
    let trained = |cache_dtype: Option<ActivationDtype>, frozen: &[&str], name: &str| {
        let out = dir.path().join(name);
        let mut config = supervised(3e-3, &out);
        let stage = &mut config.stages[0];
        (stage.steps, stage.validate_every) = (10, Some(1));
        stage.frozen = frozen.iter().map(|name| (*name).to_owned()).collect();
        stage.evaluations = Some(EvaluationConfig {
            file: plan.out.join("preferences.jsonl"),
            curriculum: false,
            cache_dtype: store,
        });
        let losses = losses(&config, &out, "sft");
        assert!(!out.join("sft.rows").exists(), "what was kept is removed");
        losses
    };
    let tower = ["model.vision_tower."];
    let trunk = [
        "model.vision_tower.",
        "model.mm_projector.",
        "model.embed_tokens.",
        "model.layers.0.",
    ];
    for (frozen, name) in [(&tower[..], "features"), (&trunk, "trunk")] {
        let kept = trained(Some(ActivationDtype::F32), frozen, &format!("{name}-kept"));
        assert_close(&kept, &trained(None, frozen, name));
    }
}

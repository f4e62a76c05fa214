//! Trainings of low-rank adapters.

use super::{checkpoint, config_with_adapters, prepare, run, train_twice};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::StageKind;
use crate::training::config::stage::frozen_part::FrozenPart;
use crate::training::stages::files::member_state::is_equal;

/// The checkpoint contains the merged adapters; all other weights are unchanged.
#[test]
fn adapters_change_only_adapted_weights() {
    let dir = tempfile::tempdir().unwrap();
    let config = config_with_adapters();
    // The activations of the frozen layer are cached.
    assert_eq!(config.stages[1].frozen_part(3), FrozenPart::Trunk(1));
    let out = train_twice(&config, dir.path()).uninterrupted;
    let before = checkpoint(&out, "sft.safetensors");
    for member in ["medical_knowledge", "conclusion"] {
        let after = checkpoint(&out, &format!("prefer.{member}.safetensors"));
        assert_eq!(after.len(), before.len());
        for (name, tensor) in &after {
            let adapted_layers = ["model.layers.1.", "model.layers.2."];
            let is_adapted = name.contains("_proj.")
                && adapted_layers.iter().any(|layer| name.starts_with(layer));
            assert_eq!(!is_equal(tensor, &before[name]), is_adapted, "{name}");
        }
    }
}

#[test]
fn checkpoint_in_progress_has_only_adapters() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_with_adapters();
    let stage = &mut config.stages[1];
    (stage.kind, stage.preferences) = (StageKind::Sft, None);
    stage.members.clear();
    prepare(&config, dir.path());
    let interrupt = Interrupt::default();
    interrupt.request();
    // The first run stops after one step of the first stage, the second run after one step of the
    // second stage.
    for _ in 0..2 {
        assert!(!run(&config, dir.path(), &interrupt).unwrap());
    }
    let names = checkpoint(dir.path(), "prefer.running.safetensors").into_keys();
    let mut names: Vec<String> = names.collect();
    // Two layers with seven adapted matrices, each with the factors A and B.
    assert_eq!(names.len(), 2 * 7 * 2);
    names.retain(|name| !name.contains("_proj.lora_"));
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn adapters_without_trained_weights_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_with_adapters();
    config.stages[0].lora = config.stages[1].lora.clone();
    prepare(&config, dir.path());
    let error = run(&config, dir.path(), &Interrupt::default()).unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("stage sft: [stages.lora] has no trained weights"), "{error}");
    assert!(error.contains("hint: put a stage without [stages.lora]"), "{error}");
}

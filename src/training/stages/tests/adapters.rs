//! Trainings of low-rank adapters.

use acem3_experts::ops::is_adapter;

use super::{checkpoint, config_with_adapters, panel_file, prepare, run, run_to_end, train_twice};
use crate::checkpoints::panel::prompt_config::MEMBERS;
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

/// Checkpoints have the adapters alone, and the panel equals that of merged checkpoints.
#[test]
fn kept_adapters_give_the_panel_of_merged_ones() {
    let dir = tempfile::tempdir().unwrap();
    let [merged, kept] = ["merged", "kept"].map(|name| dir.path().join(name));
    let mut config = config_with_adapters();
    let mut again = config.stages[1].clone();
    (again.name, again.members) = ("again".to_owned(), vec!["conclusion".to_owned()]);
    config.stages.push(again);
    prepare(&config, &merged);
    run_to_end(&config, &merged);
    config.keeps_adapters = true;
    prepare(&config, &kept);
    run_to_end(&config, &kept);
    for member in MEMBERS {
        let file = format!("{member}.safetensors");
        assert!(panel_file(&merged, &file) == panel_file(&kept, &file), "{file}");
    }
    for file in ["trunk.safetensors", "panel.toml"] {
        assert!(panel_file(&merged, file) == panel_file(&kept, file), "{file}");
    }
    for name in ["prefer.medical_knowledge", "prefer.conclusion", "again.conclusion"] {
        let tensors = checkpoint(&kept, &format!("{name}.safetensors"));
        assert_eq!(tensors.len(), 2 * 7 * 3);
        assert!(tensors.keys().all(|tensor| is_adapter(tensor)), "{name}");
        assert!(!kept.join(format!("{name}.adapters.safetensors")).exists());
    }
}

#[test]
fn interrupted_training_keeps_the_same_adapters() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_with_adapters();
    config.keeps_adapters = true;
    train_twice(&config, dir.path());
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

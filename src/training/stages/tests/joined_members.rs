//! A stage that trains all members as one model, after stages that trained them separately.

use super::*;

#[test]
fn all_members_begin_with_the_weights_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let config: TrainConfig = toml::from_str(&format!("{CONFIG}{JOINED}")).unwrap();
    prepare(&config, dir.path());
    run_to_end(&config, dir.path());
    let joined = checkpoint(dir.path(), "joined.safetensors");
    let difference = |file: &str| largest_difference(&joined, &checkpoint(dir.path(), file));
    assert!(difference("prefer.medical_knowledge.safetensors") < 1e-6);
    assert!(difference("prefer.conclusion.safetensors") > 1e-4);
    // The panel has one model for all members.
    let members = MEMBERS.map(|member| panel_file(dir.path(), &format!("{member}.safetensors")));
    assert!(members.iter().all(|member| *member == members[0]));
}

#[test]
fn joint_stage_after_separate_ones_needs_a_source() {
    let joined = JOINED.replace("from = \"medical_knowledge\"\n", "");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train.toml");
    std::fs::write(&path, format!("{CONFIG}{joined}")).unwrap();
    let error = format!("{:#}", TrainConfig::read(&path).unwrap_err());
    assert!(error.contains("would overwrite") && error.contains("`from`"), "{error}");
}

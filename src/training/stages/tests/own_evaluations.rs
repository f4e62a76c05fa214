//! Preference stages that reject evaluations of the panel itself, with the consistency of both
//! presentation orders.

use acem3_experts::train::OtherOrder;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::training::config::reward_tokens::RewardTokens;
use crate::training::config::stage::reward_token::RewardTokenRole;
use crate::training::examples::sources::phantom_examples;
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::preferences::preference_sequence::PreferenceSequenceBuilder;

/// Returns the configuration with own evaluations and this consistency.
fn own_config(consistency: f64) -> TrainConfig {
    // An untrained model writes analyses as long as it may.
    let text = CONFIG
        .replacen("[[stages]]", "[judging]\nanalysis_tokens = 4\n\n[[stages]]", 1)
        .replace(", \"conclusion\"]", "]")
        .replace("cases = 3", &format!("cases = 3\nown = true\nconsistency = {consistency:?}"));
    toml::from_str(&text).unwrap()
}

#[test]
fn own_evaluations_are_rejected_after_a_resume_as_without() {
    let dir = tempfile::tempdir().unwrap();
    let twice = train_twice(&own_config(0.5), dir.path());
    // The panel of the judging is not kept.
    for out in [&twice.uninterrupted, &twice.interrupted] {
        assert!(!out.join("prefer.panel").exists() && !out.join("prefer.own.json").exists());
    }
    // Consistency changes what is learned.
    let plain = dir.path().join("plain");
    prepare(&own_config(0.0), &plain);
    run_to_end(&own_config(0.0), &plain);
    let member = "medical_knowledge.safetensors";
    assert!(panel_file(&plain, member) != panel_file(&twice.uninterrupted, member));
    // The stage trains nothing else.
    let other = "expression.safetensors";
    assert!(panel_file(&plain, other) == panel_file(&twice.uninterrupted, other));
}

#[test]
fn settings_without_effect_are_rejected() {
    let error = |text: String| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.toml");
        std::fs::write(&path, text).unwrap();
        format!("{:#}", TrainConfig::read(&path).unwrap_err())
    };
    let with = |lines: &str| CONFIG.replace("cases = 3", &format!("cases = 3\n{lines}"));
    assert!(error(with("consistency = 0.5")).contains("own = true"));
    assert!(error(with("own = true")).contains("trains conclusion too"));
    let medical = with("own = true\ntogether = true").replace(", \"conclusion\"]", "]");
    assert!(error(medical).contains("hint: remove `file` and `together`"));
}

/// The tokens of both orders are those of the same evaluations.
#[test]
fn targets_of_both_orders_correspond() {
    let config = config();
    let builder = sequence_builder(&config);
    let images = ImagePreparation::of_training(&config).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let pair = phantom_examples::pair_example(1, 2, &images, &mut rng).unwrap();
    for role in [RewardTokenRole::Target, RewardTokenRole::Context, RewardTokenRole::Absent] {
        let sequences =
            PreferenceSequenceBuilder::new(&builder, role, &RewardTokens::default()).unwrap();
        let build = |pair| {
            let built = sequences.build(pair, pair, &[1], |_, ratings| Some(ratings.clone()));
            built.unwrap().remove(0)
        };
        let (first, second) = (build(&pair), build(&pair.exchanged()));
        let tokens = |sequence: &acem3_experts::train::Sequence| -> Vec<u32> {
            let targets = sequence.targets.iter().filter(|target| target.branch == 1);
            targets.map(|target| target.token).collect()
        };
        let [targets, other_targets] = [&first, &second].map(|built| built.targets[0]);
        let order = OtherOrder {
            sequence: second.sequence.clone(),
            lead: targets.lead,
            first_targets: targets.first,
        };
        let (own, other) = (tokens(&first.sequence), tokens(&order.sequence));
        assert_eq!(targets.lead, usize::from(role == RewardTokenRole::Target));
        assert_eq!(own.len(), targets.lead + targets.first + other_targets.first);
        let (lead, middle) = (order.lead, order.lead + order.first_targets);
        let exchanged = [&own[..lead], &own[middle..], &own[lead..middle]].concat();
        assert_eq!(other, exchanged);
    }
}

//! Tests of losses, gradients and ten training steps against PyTorch, peft and TRL. The scripts
//! `make_training.py`, `make_lora.py` and `make_trl.py` in `assets/golden` generate the expected
//! values.

use std::collections::HashMap;

use acem3_experts::prompt::{PromptLayout, PromptToken, Rubric, RubricDetail};
use acem3_experts::train::{
    Batch, DpoLossConfig, LoraConfig, MatrixRule, Optimizer, OptimizerConfig, Parameters,
    PreferenceExample, Schedule, Sequence, ShardLoss, TrainableModel, Trainer, TrainingImage,
};
use acem3_experts::{ModelConfig, TextTokenizer};
use acem3_vision::TileGrid;
use candle::{Device, Tensor};

use super::{assert_near, expected_values, golden_path, load_member, to_token_ids};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::{
    PreferenceFolderConfig, PromptStyle, read_preferences, write_phantom_preferences,
};
use crate::training::{FileSequenceBuilder, ImagePreparation, RewardTokenRole, RewardTokens};

pub(super) const LOSS: DpoLossConfig =
    DpoLossConfig { beta: 0.3, nll_weight: 0.0, consistency_weight: 0.0 };
pub(super) const ADAMW: OptimizerConfig = OptimizerConfig {
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-8,
    weight_decay: 0.1,
    matrices: MatrixRule::AdamW,
    momentum: 0.95,
};
/// Reward tokens of the chosen and the rejected completion.
const REWARD_TOKENS: [u32; 2] = [7, 11];
const IMAGE_TOKENS: usize = 16;

/// Files of expected values, with the role of the reward token in each loss.
const PREFERENCE_LOSSES: [(&str, RewardTokenRole); 3] = [
    ("dpo", RewardTokenRole::Absent),
    ("rtdpo", RewardTokenRole::Target),
    ("adto", RewardTokenRole::Context),
];

pub(super) fn load_training_values(name: &str) -> HashMap<String, Tensor> {
    let path = golden_path("training").join(format!("{name}.safetensors"));
    candle::safetensors::load(path, &Device::Cpu).unwrap()
}

/// Returns the trainable tiny LLaVA, with its output weights scaled by `output_scale`. The
/// reference model of the preference losses has scale 0.7.
pub(super) fn tiny_llava(output_scale: f64) -> (Parameters, TrainableModel) {
    tiny_llava_with(output_scale, 1, |parameters| {
        parameters.freeze(&["model.vision_tower.".to_owned()])
    })
}

/// Like [`tiny_llava`], with another choice of trainable weights, and its decoder split after
/// `depth` layers.
pub(super) fn tiny_llava_with(
    output_scale: f64,
    depth: usize,
    select_trainable: impl FnOnce(&Parameters) -> Parameters,
) -> (Parameters, TrainableModel) {
    let member = load_member("llava");
    let tensors = member.weights.tensors.iter().map(|(name, stored)| {
        let scale = if name == "lm_head.weight" { output_scale } else { 1.0 };
        (name.clone(), (&stored.values * scale).unwrap())
    });
    let parameters = select_trainable(&Parameters::from_tensors(tensors).unwrap());
    let (config, _) = model_config("llava");
    let model = TrainableModel::load(&parameters.builder(), &config, depth).unwrap();
    (parameters, model)
}

/// Returns the configuration of a tiny checkpoint, and its image preprocessing.
pub(super) fn model_config(folder: &str) -> (ModelConfig, ImagePreparation) {
    let member = load_member(folder);
    let vision = member.vision.unwrap();
    let config = ModelConfig {
        vision: vision.vision,
        selection: vision.selection,
        projector: vision.projector,
        tiling: vision.tiling,
        decoder: member.decoder,
    };
    let images = ImagePreparation::new(vision.processor, &config).unwrap();
    (config, images)
}

/// Returns a sequence for each of two prompts, with one branch for each named completion.
fn load_sequences(names: &[&str], role: RewardTokenRole) -> Vec<Sequence> {
    let inputs = load_training_values("inputs");
    let pixels = expected_values()["pixel_values"].flatten_all().unwrap();
    let image = TrainingImage {
        pixels: pixels.to_vec1().unwrap().into(),
        grid: TileGrid::whole((32, 32)),
        tokens: IMAGE_TOKENS,
    };
    let sequence_of = |i: usize| {
        let tokens = |part: &str| to_token_ids(&inputs[&format!("{i}.{part}")]);
        let text = |part| tokens(part).into_iter().map(PromptToken::Token);
        let prompt: Vec<PromptToken> =
            text("head").chain([PromptToken::Image]).chain(text("tail")).collect();
        let mut sequence = Sequence::new(&prompt, Some(image.clone()));
        for (name, token) in names.iter().zip(REWARD_TOKENS) {
            let first = match role {
                RewardTokenRole::Absent => None,
                RewardTokenRole::Target => Some((token, 1.0)),
                RewardTokenRole::Context => Some((token, 0.0)),
            };
            let rest = tokens(name).into_iter().map(|token| (token, 1.0));
            sequence.push_branch(first.into_iter().chain(rest));
        }
        sequence
    };
    vec![sequence_of(0), sequence_of(1)]
}

pub(super) fn load_preferences(
    role: RewardTokenRole,
    reference: &TrainableModel,
) -> Vec<PreferenceExample> {
    let sequences = load_sequences(&["chosen", "rejected"], role);
    let log_likelihoods = reference.log_likelihoods(&Batch(&sequences)).unwrap();
    let pairs = sequences.into_iter().zip(log_likelihoods);
    pairs
        .map(|(sequence, reference)| PreferenceExample {
            sequence,
            reference_log_likelihoods: reference,
            other_order: None,
        })
        .collect()
}

/// Returns a schedule with a constant learning rate.
pub(super) fn constant_schedule(rate: f64) -> Schedule {
    Schedule { peak: rate, warmup: 0, steps: 10, floor: 1.0 }
}

fn create_trainer(parameters: &Parameters, rate: f64) -> Trainer {
    let optimizer = Optimizer::new(parameters.trainable(), ADAMW);
    Trainer::new(optimizer, constant_schedule(rate), f64::INFINITY)
}

/// Checks the mean loss and the gradient of every parameter.
pub(super) fn assert_loss_and_gradients(
    loss: &ShardLoss,
    parameters: &Parameters,
    expected_values: &HashMap<String, Tensor>,
    kind: &str,
) {
    let value = expected_values["loss"].to_vec1::<f32>().unwrap()[0];
    let difference = (loss.loss_sum / loss.weight_sum - f64::from(value)).abs();
    assert!(difference < 1e-5 * f64::from(value), "{kind}: {difference}");
    let store = loss.backward().unwrap();
    let trainable = parameters.trainable();
    let weight_names =
        expected_values.keys().filter(|name| name.contains("weight") || name.contains("bias"));
    assert_eq!(weight_names.count(), trainable.len(), "{kind}");
    for (name, var) in trainable {
        let actual = (store.get(&var).unwrap() / loss.weight_sum).unwrap();
        if is_zero(&expected_values[&name]) {
            assert!(is_zero(&actual), "{kind}: {name}");
            continue;
        }
        assert_near(&actual, &expected_values[&name], &format!("{kind}: {name}"));
    }
}

fn is_zero(tensor: &Tensor) -> bool {
    let largest = tensor.abs().unwrap().max_all().unwrap();
    largest.to_scalar::<f32>().unwrap() == 0.0
}

#[test]
fn supervised_loss_and_gradients_match_torch() {
    let (parameters, model) = tiny_llava(1.0);
    let sequences = load_sequences(&["chosen"], RewardTokenRole::Absent);
    let loss = model.loss(&Batch(&sequences), |_| true).unwrap();
    assert_loss_and_gradients(&loss, &parameters, &load_training_values("sft"), "sft");
}

#[test]
fn preference_losses_and_gradients_match_torch() {
    for (kind, role) in PREFERENCE_LOSSES {
        let (parameters, model) = tiny_llava(1.0);
        let (pairs, expected_values) =
            (load_preferences(role, &tiny_llava(0.7).1), load_training_values(kind));
        for (i, pair) in pairs.iter().enumerate() {
            let reference = expected_values[&format!("reference.{i}")].to_vec1::<f32>().unwrap();
            for (actual, expected) in pair.reference_log_likelihoods.iter().zip(reference) {
                let difference = (actual / f64::from(expected) - 1.0).abs();
                assert!(difference < 1e-5, "{kind}: {actual} {expected}");
            }
        }
        let loss = model.preference_loss(&pairs, LOSS).unwrap();
        assert_loss_and_gradients(&loss, &parameters, &expected_values, kind);
    }
}

#[test]
fn ten_steps_match_torch() {
    let (parameters, model) = tiny_llava(1.0);
    let pairs = load_preferences(RewardTokenRole::Target, &tiny_llava(0.7).1);
    let expected_values = load_training_values("steps");
    let mut trainer = create_trainer(&parameters, 1e-3);
    let mut margin = f64::NEG_INFINITY;
    for (i, loss) in expected_values["losses"].to_vec1::<f32>().unwrap().iter().enumerate() {
        let step = trainer.step(&[()], |()| model.preference_loss(&pairs, LOSS));
        let step = step.unwrap();
        let difference = (step.loss - f64::from(*loss)).abs();
        assert!(difference < 1e-4 * f64::from(*loss), "step {i}: {} {loss}", step.loss);
        let now = step.rewards[0] - step.rewards[1];
        assert!(now > margin, "step {i}");
        margin = now;
    }
    for (name, var) in parameters.trainable() {
        assert_near(var.as_tensor(), &expected_values[&name], &name);
    }
}

#[test]
fn lora_training_matches_peft() {
    let expected_values = load_training_values("lora");
    let targets = ["q_proj", "k_proj", "v_proj", "o_proj"].into_iter();
    let lora = LoraConfig {
        rank: 3,
        alpha: 6.0,
        targets: targets.chain(["gate_proj", "up_proj", "down_proj"]).map(str::to_owned).collect(),
    };
    let (parameters, model) = tiny_llava_with(1.0, 1, |parameters| {
        let frozen = parameters.freeze(&["model.layers.0.".to_owned()]);
        frozen.with_adapters(&lora, 1).unwrap()
    });
    let start = expected_values.iter().filter_map(|(name, tensor)| {
        let name = name.strip_prefix("start.")?;
        Some((name.to_owned(), tensor.clone()))
    });
    parameters.restore(start).unwrap();
    let pairs = load_preferences(RewardTokenRole::Target, &model);
    let losses = expected_values["losses"].to_vec1::<f32>().unwrap();
    let assert_gradients = |prefix: &str, step: usize| {
        let loss = model.preference_loss(&pairs, LOSS).unwrap();
        let strip_prefix = |(name, tensor): (&String, &Tensor)| {
            Some((name.strip_prefix(prefix)?.to_owned(), tensor.clone()))
        };
        let mut gradients: HashMap<String, Tensor> =
            expected_values.iter().filter_map(strip_prefix).collect();
        let value = Tensor::new(&losses[step..=step], &Device::Cpu).unwrap();
        gradients.insert("loss".to_owned(), value);
        assert_loss_and_gradients(&loss, &parameters, &gradients, prefix);
    };
    // At the start `B` is zero, so the gradient of `A` exists but is zero.
    let first = expected_values.iter().filter(|(name, _)| name.starts_with("first."));
    for (name, gradient) in first {
        assert_eq!(is_zero(gradient), name.contains("lora_A"), "{name}");
    }
    assert_gradients("first.", 0);
    let mut trainer = create_trainer(&parameters, 1e-2);
    for loss in &losses[..3] {
        let step = trainer.step(&[()], |()| model.preference_loss(&pairs, LOSS));
        let difference = (step.unwrap().loss / f64::from(*loss) - 1.0).abs();
        assert!(difference < 1e-4, "{loss}: {difference}");
    }
    assert_gradients("last.", 3);
    for (name, var) in parameters.trainable() {
        assert_near(var.as_tensor(), &expected_values[&name], &name);
    }
    // The merged matrices match those of peft. All other tensors are unchanged.
    let (before, _) = tiny_llava(1.0);
    let (before, merged) = (before.all(), parameters.merge_adapters().unwrap());
    assert_eq!(before.len(), merged.len());
    for ((name, before), (same_name, merged)) in before.iter().zip(&merged) {
        assert_eq!(name, same_name);
        if let Some(expected) = expected_values.get(name) {
            assert_near(merged, expected, name);
        } else {
            let difference = (before.as_tensor() - merged).unwrap();
            assert!(is_zero(&difference), "{name}");
        }
    }
    let changed = expected_values.keys().filter(|name| name.contains("_proj.weight"));
    assert_eq!(changed.count(), 7);
}

/// Returns the tokenizer of the tiny LLaVA without the step that prepends a space.
fn plain_tokenizer() -> TextTokenizer {
    let json = std::fs::read(golden_path("checkpoints/llava/tokenizer.json")).unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let steps = json["normalizer"]["normalizers"].as_array_mut().unwrap();
    steps.retain(|step| step["type"] != "Prepend");
    TextTokenizer::parse(&serde_json::to_vec(&json).unwrap()).unwrap()
}

/// Trains on exported preferences and compares the losses with TRL (`assets/golden/make_trl.py`).
#[test]
fn losses_of_exported_preferences_match_trl() {
    let dir = tempfile::tempdir().unwrap();
    let config = PreferenceFolderConfig {
        prompts: PromptStyle::of_layout(
            PromptLayout::Paper,
            RubricDetail::Names,
            Rubric::built_in().unwrap(),
        ),
        reward_tokens: Some(RewardTokens::default()),
        ..PreferenceFolderConfig::of_phantoms(dir.path().join("pairs"), 2)
    };
    write_phantom_preferences(&config, &Interrupt::default()).unwrap();
    let preference_pairs = read_preferences(&config.out.join("preferences.jsonl")).unwrap();
    let preference_pairs = preference_pairs.items;
    let (_, images) = model_config("llava");
    let builder = FileSequenceBuilder {
        tokenizer: &plain_tokenizer(),
        images: &images,
        reward_token_role: RewardTokenRole::Target,
        reward_tokens: &RewardTokens::default(),
        strips_reward_tokens: false,
    };
    let (parameters, model) = tiny_llava(1.0);
    let pairs = preference_pairs.iter().map(|pair| {
        let sequence = builder.build_preference(pair).unwrap();
        let log_likelihoods = model.log_likelihoods(&Batch(std::slice::from_ref(&sequence)));
        PreferenceExample {
            sequence,
            reference_log_likelihoods: log_likelihoods.unwrap()[0],
            other_order: None,
        }
    });
    let pairs: Vec<PreferenceExample> = pairs.collect();
    let trl = std::fs::read(golden_path("training/trl.json")).unwrap();
    let trl: serde_json::Value = serde_json::from_slice(&trl).unwrap();
    assert_eq!(trl["pairs"], pairs.len());
    let adamw = OptimizerConfig { beta2: 0.999, weight_decay: 0.0, ..OptimizerConfig::default() };
    let loss = DpoLossConfig { beta: 0.1, nll_weight: 0.0, consistency_weight: 0.0 };
    let optimizer = Optimizer::new(parameters.trainable(), adamw);
    let mut trainer = Trainer::new(optimizer, constant_schedule(1e-3), f64::INFINITY);
    for (i, expected) in trl["losses"].as_array().unwrap().iter().enumerate() {
        let shards: Vec<_> = pairs.chunks(4).collect();
        let step = trainer.step(&shards, |pairs| model.preference_loss(pairs, loss));
        let (actual, expected) = (step.unwrap().loss, expected.as_f64().unwrap());
        assert!((actual - expected).abs() < 1e-3, "step {i}: {actual} {expected}");
    }
}

//! Losses of preference training, their gradients and ten steps against PyTorch:
//! `assets/golden/make_training.py` says what was computed, `make_lora.py` what with peft.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_experts::prompt::{Layout, Slot};
use acem3_experts::train::{
    AdamW, AdamWConfig, Batch, Lora, Loss, Parameters, Preference, PreferenceLoss, Schedule,
    Sequence, Student, Trainer,
};
use acem3_experts::{ModelConfig, TextTokenizer};
use candle::{Device, Tensor};

use super::{assert_near, expected, golden, member, numbers};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::{
    PreferenceFolderConfig, read_preferences, write_phantom_preferences,
};
use crate::training::{FileSequenceBuilder, Negative, RewardTokenRole as Rewarded};

pub(super) const LOSS: PreferenceLoss = PreferenceLoss {
    beta: 0.3,
    anchor: 0.0,
};
pub(super) const ADAMW: AdamWConfig = AdamWConfig {
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-8,
    weight_decay: 0.1,
};
const REWARD: [u32; 2] = [7, 11];
const IMAGE_TOKENS: usize = 16;

/// What a reward token before a continuation is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reward {
    Absent,
    Target,
    Context,
}

const KINDS: [(&str, Reward); 3] = [
    ("dpo", Reward::Absent),
    ("rtdpo", Reward::Target),
    ("adto", Reward::Context),
];

pub(super) fn values(name: &str) -> HashMap<String, Tensor> {
    let path = golden("training").join(format!("{name}.safetensors"));
    candle::safetensors::load(path, &Device::Cpu).unwrap()
}

/// The tiny LLaVA in training, its output weights turned down as the reference has them or not.
pub(super) fn student(turned_down: f64) -> (Parameters, Student) {
    student_of(turned_down, 1, |parameters| {
        parameters.freeze(&["model.vision_tower.".to_owned()])
    })
}

/// The same, with other weights trained, and its decoder cut after `depth` layers.
pub(super) fn student_of(
    turned_down: f64,
    depth: usize,
    trained: impl FnOnce(&Parameters) -> Parameters,
) -> (Parameters, Student) {
    let member = member("llava");
    let tensors = member.weights.tensors.iter().map(|(name, stored)| {
        let scale = if name == "lm_head.weight" {
            turned_down
        } else {
            1.0
        };
        (name.clone(), (&stored.values * scale).unwrap())
    });
    let parameters = trained(&Parameters::from_tensors(tensors).unwrap());
    let sight = member.sight.unwrap();
    let config = ModelConfig {
        vision: sight.vision,
        selection: sight.selection,
        projector: sight.projector,
        decoder: member.decoder,
    };
    let student = Student::load(&parameters.builder(), &config, depth).unwrap();
    (parameters, student)
}

/// The prompts, each with one branch for each of the named continuations.
fn sequences(names: &[&str], reward: Reward) -> Vec<Sequence> {
    let inputs = values("inputs");
    let pixels = expected()["pixel_values"].flatten_all().unwrap();
    let pixels: Arc<[f32]> = pixels.to_vec1().unwrap().into();
    let of = |i: usize| {
        let tokens = |part: &str| numbers(&inputs[&format!("{i}.{part}")]);
        let text = |part| tokens(part).into_iter().map(Slot::Token);
        let prompt: Vec<Slot> = text("head")
            .chain([Slot::Image])
            .chain(text("tail"))
            .collect();
        let mut sequence = Sequence::new(&prompt, Some(pixels.clone()), IMAGE_TOKENS);
        for (name, token) in names.iter().zip(REWARD) {
            let first = match reward {
                Reward::Absent => None,
                Reward::Target => Some((token, 1.0)),
                Reward::Context => Some((token, 0.0)),
            };
            let rest = tokens(name).into_iter().map(|token| (token, 1.0));
            sequence.branch(first.into_iter().chain(rest));
        }
        sequence
    };
    vec![of(0), of(1)]
}

pub(super) fn preferences(reward: Reward, reference: &Student) -> Vec<Preference> {
    let sequences = sequences(&["chosen", "rejected"], reward);
    let likely = reference.log_likelihoods(&Batch(&sequences)).unwrap();
    let pairs = sequences.into_iter().zip(likely);
    pairs
        .map(|(sequence, reference)| Preference {
            sequence,
            reference,
        })
        .collect()
}

/// Steps at one rate.
pub(super) fn steady(rate: f64) -> Schedule {
    Schedule {
        peak: rate,
        warmup: 0,
        steps: 10,
        floor: 1.0,
    }
}

fn trainer(parameters: &Parameters, rate: f64) -> Trainer {
    let optimizer = AdamW::new(parameters.trainable(), ADAMW);
    Trainer::new(optimizer, steady(rate), f64::INFINITY)
}

/// The mean of a loss, and the gradient of every parameter.
pub(super) fn assert_is(
    loss: &Loss,
    parameters: &Parameters,
    want: &HashMap<String, Tensor>,
    kind: &str,
) {
    let value = want["loss"].to_vec1::<f32>().unwrap()[0];
    let far = (loss.value / loss.weight - f64::from(value)).abs();
    assert!(far < 1e-5 * f64::from(value), "{kind}: {far}");
    let store = loss.backward().unwrap();
    let trained = parameters.trainable();
    let named = want
        .keys()
        .filter(|name| name.contains("weight") || name.contains("bias"));
    assert_eq!(named.count(), trained.len(), "{kind}");
    for (name, var) in trained {
        let got = (store.get(&var).unwrap() / loss.weight).unwrap();
        if is_zero(&want[&name]) {
            assert!(is_zero(&got), "{kind}: {name}");
            continue;
        }
        assert_near(&got, &want[&name], &format!("{kind}: {name}"));
    }
}

fn is_zero(tensor: &Tensor) -> bool {
    let largest = tensor.abs().unwrap().max_all().unwrap();
    largest.to_scalar::<f32>().unwrap() == 0.0
}

#[test]
fn supervised_loss_and_every_gradient_are_those_of_torch() {
    let (parameters, student) = student(1.0);
    let sequences = sequences(&["chosen"], Reward::Absent);
    let loss = student.loss(&Batch(&sequences), |_| true).unwrap();
    assert_is(&loss, &parameters, &values("sft"), "sft");
}

#[test]
fn preference_losses_and_every_gradient_are_those_of_torch() {
    for (kind, reward) in KINDS {
        let (parameters, student) = student(1.0);
        let (pairs, want) = (preferences(reward, &self::student(0.7).1), values(kind));
        for (i, pair) in pairs.iter().enumerate() {
            let reference = want[&format!("reference.{i}")].to_vec1::<f32>().unwrap();
            for (got, want) in pair.reference.iter().zip(reference) {
                let far = (got / f64::from(want) - 1.0).abs();
                assert!(far < 1e-5, "{kind}: {got} {want}");
            }
        }
        let loss = student.preference_loss(&pairs, LOSS).unwrap();
        assert_is(&loss, &parameters, &want, kind);
    }
}

#[test]
fn ten_steps_are_those_of_torch() {
    let (parameters, student) = student(1.0);
    let pairs = preferences(Reward::Target, &self::student(0.7).1);
    let want = values("steps");
    let mut trainer = trainer(&parameters, 1e-3);
    let mut margin = f64::NEG_INFINITY;
    for (i, loss) in want["losses"].to_vec1::<f32>().unwrap().iter().enumerate() {
        let step = trainer.step(&[()], |()| student.preference_loss(&pairs, LOSS));
        let step = step.unwrap();
        let far = (step.loss - f64::from(*loss)).abs();
        assert!(
            far < 1e-4 * f64::from(*loss),
            "step {i}: {} {loss}",
            step.loss
        );
        let now = step.rewards[0] - step.rewards[1];
        assert!(now > margin, "step {i}");
        margin = now;
    }
    for (name, var) in parameters.trainable() {
        assert_near(var.as_tensor(), &want[&name], &name);
    }
}

#[test]
fn adapters_learn_as_those_of_peft() {
    let want = values("lora");
    let targets = ["q_proj", "k_proj", "v_proj", "o_proj"].into_iter();
    let lora = Lora {
        rank: 3,
        alpha: 6.0,
        targets: targets
            .chain(["gate_proj", "up_proj", "down_proj"])
            .map(str::to_owned)
            .collect(),
    };
    let (parameters, student) = student_of(1.0, 1, |parameters| {
        let below = parameters.freeze(&["model.layers.0.".to_owned()]);
        below.adapt(&lora, 1).unwrap()
    });
    let start = want.iter().filter_map(|(name, tensor)| {
        let name = name.strip_prefix("start.")?;
        Some((name.to_owned(), tensor.clone()))
    });
    parameters.restore(start).unwrap();
    let pairs = preferences(Reward::Target, &student);
    let losses = want["losses"].to_vec1::<f32>().unwrap();
    let assert_gradients = |prefix: &str, step: usize| {
        let loss = student.preference_loss(&pairs, LOSS).unwrap();
        let of = |(name, tensor): (&String, &Tensor)| {
            Some((name.strip_prefix(prefix)?.to_owned(), tensor.clone()))
        };
        let mut gradients: HashMap<String, Tensor> = want.iter().filter_map(of).collect();
        let value = Tensor::new(&losses[step..=step], &Device::Cpu).unwrap();
        gradients.insert("loss".to_owned(), value);
        assert_is(&loss, &parameters, &gradients, prefix);
    };
    // `B` is zero, and with it the gradient of `A`, which is one nonetheless.
    let first = want.iter().filter(|(name, _)| name.starts_with("first."));
    for (name, gradient) in first {
        assert_eq!(is_zero(gradient), name.contains("lora_A"), "{name}");
    }
    assert_gradients("first.", 0);
    let mut trainer = trainer(&parameters, 1e-2);
    for loss in &losses[..3] {
        let step = trainer.step(&[()], |()| student.preference_loss(&pairs, LOSS));
        let far = (step.unwrap().loss / f64::from(*loss) - 1.0).abs();
        assert!(far < 1e-4, "{loss}: {far}");
    }
    assert_gradients("last.", 3);
    for (name, var) in parameters.trainable() {
        assert_near(var.as_tensor(), &want[&name], &name);
    }
    // What is left of it are the matrices that peft merges, and nothing else is changed or there.
    let (before, _) = self::student(1.0);
    let (before, merged) = (before.all(), parameters.merged().unwrap());
    assert_eq!(before.len(), merged.len());
    for ((name, before), (same_name, merged)) in before.iter().zip(&merged) {
        assert_eq!(name, same_name);
        if let Some(want) = want.get(name) {
            assert_near(merged, want, name);
        } else {
            let far = (before.as_tensor() - merged).unwrap();
            assert!(is_zero(&far), "{name}");
        }
    }
    let changed = want.keys().filter(|name| name.contains("_proj.weight"));
    assert_eq!(changed.count(), 7);
}

/// The tokenizer of the tiny LLaVA without the space before a text.
fn plain_tokenizer() -> TextTokenizer {
    let json = std::fs::read(golden("checkpoints/llava/tokenizer.json")).unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let steps = json["normalizer"]["normalizers"].as_array_mut().unwrap();
    steps.retain(|step| step["type"] != "Prepend");
    TextTokenizer::parse(&serde_json::to_vec(&json).unwrap()).unwrap()
}

/// The preferences that this program writes, learned here and by TRL (`assets/golden/make_trl.py`).
#[test]
fn the_first_ten_losses_of_exported_preferences_are_those_of_trl() {
    let dir = tempfile::tempdir().unwrap();
    let plan = PreferenceFolderConfig {
        out: dir.path().join("pairs"),
        cases: 2,
        seed: 3,
        negatives: Negative::ALL.to_vec(),
        layout: Layout::Paper,
        reward_tokens: true,
    };
    write_phantom_preferences(&plan, &Interrupt::default()).unwrap();
    let written = read_preferences(&plan.out.join("preferences.jsonl")).unwrap();
    let written = written.items;
    let writer = FileSequenceBuilder {
        tokenizer: &plain_tokenizer(),
        processor: &member("llava").sight.unwrap().processor,
        image_tokens: IMAGE_TOKENS,
        reward: Rewarded::Target,
    };
    let (parameters, student) = student(1.0);
    let pairs = written.iter().map(|pair| {
        let sequence = writer.preference(pair).unwrap();
        let likely = student.log_likelihoods(&Batch(std::slice::from_ref(&sequence)));
        Preference {
            sequence,
            reference: likely.unwrap()[0],
        }
    });
    let pairs: Vec<Preference> = pairs.collect();
    let trl = std::fs::read(golden("training/trl.json")).unwrap();
    let trl: serde_json::Value = serde_json::from_slice(&trl).unwrap();
    assert_eq!(trl["pairs"], pairs.len());
    let constants = AdamWConfig {
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
    };
    let loss = PreferenceLoss {
        beta: 0.1,
        anchor: 0.0,
    };
    let optimizer = AdamW::new(parameters.trainable(), constants);
    let mut trainer = Trainer::new(optimizer, steady(1e-3), f64::INFINITY);
    for (i, expected) in trl["losses"].as_array().unwrap().iter().enumerate() {
        let shards: Vec<_> = pairs.chunks(4).collect();
        let step = trainer.step(&shards, |pairs| student.preference_loss(pairs, loss));
        let (got, expected) = (step.unwrap().loss, expected.as_f64().unwrap());
        assert!((got - expected).abs() < 1e-3, "step {i}: {got} {expected}");
    }
}

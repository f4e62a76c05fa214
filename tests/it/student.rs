//! A tiny student that sees: what its sequences cost.

use std::sync::Arc;

use acem3_experts::ModelConfig;
use acem3_experts::prompt::Slot;
use acem3_experts::train::{
    Batch, Given, Parameters, Preference, PreferenceLoss, Sequence, Student,
};
use acem3_kernels::Activation;
use acem3_projector::{ProjectorConfig, ProjectorKind};
use acem3_vision::{Form, SelectFeature, Selection, VisionConfig};
use candle::{DType, Device};

use crate::tiny;

fn config() -> ModelConfig {
    ModelConfig {
        vision: VisionConfig {
            hidden_size: 16,
            intermediate_size: 20,
            num_hidden_layers: 2,
            num_attention_heads: 2,
            image_size: 12,
            patch_size: 6,
            num_channels: 3,
            layer_norm_eps: 1e-5,
            hidden_act: Activation::QuickGelu,
            form: Form::default(),
        },
        selection: Selection {
            select_layer: -1,
            select_feature: SelectFeature::Patch,
            post_norm: false,
        },
        projector: ProjectorConfig {
            kind: ProjectorKind::Mlp2xGelu,
            vision_hidden_size: 16,
            hidden_size: 32,
        },
        decoder: tiny::config(&tiny::tokenizer()),
    }
}

/// Not trained.
pub(crate) const FROZEN: [&str; 1] = ["model.vision_tower.vision_model.embeddings."];

pub(crate) fn student(parameters: &Parameters) -> Student {
    let student = Student::load(&parameters.builder(), &config(), 2);
    student.unwrap()
}

/// A sequence about a picture: its prompt, and branches whose tokens are all learned.
pub(crate) fn sequence(salt: u32, image: bool, branches: &[&[u32]]) -> Sequence {
    let prompt = [
        Slot::Token(7),
        Slot::Image,
        Slot::Token(salt),
        Slot::Token(9),
    ];
    let pixels: Arc<[f32]> = (0..3 * 12 * 12)
        .map(|i| ((i as u32 * (salt + 3)) as f32 * 0.11).sin())
        .collect();
    let mut sequence = if image {
        Sequence::new(&prompt, Some(pixels), config().image_tokens())
    } else {
        Sequence::new(&[prompt[0], prompt[2]], None, 0)
    };
    for branch in branches {
        sequence.branch(branch.iter().map(|token| (*token, 1.0)));
    }
    sequence
}

/// Random weights and the model that has them.
pub(crate) fn fresh() -> (Parameters, Student) {
    let parameters = Parameters::fresh(5).freeze(&FROZEN.map(str::to_owned));
    let student = student(&parameters);
    (parameters, student)
}

fn sum(student: &Student, sequences: &[Sequence]) -> f64 {
    let loss = student.loss(&Batch(sequences), |_| true).unwrap();
    f64::from(loss.sum.to_scalar::<f32>().unwrap())
}

#[test]
fn branches_and_batches_cost_what_their_plain_sequences_cost() {
    let (_, student) = fresh();
    let (a, b, c) = ([1, 2, 3], [4, 5], [6, 7, 8, 9]);
    let joined = [
        sequence(1, true, &[&a, &b]),
        sequence(2, false, &[&c]),
        sequence(3, true, &[&c, &a, &b]),
    ];
    let plain = [
        sequence(1, true, &[&a]),
        sequence(1, true, &[&b]),
        sequence(2, false, &[&c]),
        sequence(3, true, &[&c]),
        sequence(3, true, &[&a]),
        sequence(3, true, &[&b]),
    ];
    let want: f64 = plain
        .iter()
        .map(|s| sum(&student, std::slice::from_ref(s)))
        .sum();
    for got in [sum(&student, &joined), sum(&student, &plain)] {
        assert!((got - want).abs() / want < 1e-6, "{got}, expected {want}");
    }
    // Branches are not equal to one text in which they follow each other.
    let one: Vec<u32> = [&a[..], &b[..]].concat();
    let chained = sum(&student, &[sequence(1, true, &[&one])]);
    assert!((chained - sum(&student, &joined[..1])).abs() > 1e-3);
}

#[test]
fn every_sequence_sees_its_own_picture() {
    let (_, student) = fresh();
    let seeing = sequence(1, true, &[&[1, 2, 3]]);
    let alone = sum(&student, std::slice::from_ref(&seeing));
    // A picture that is in no prompt must not move the others.
    let mut blind = sequence(2, false, &[&[4, 5]]);
    let expected = alone + sum(&student, std::slice::from_ref(&blind));
    blind.given = sequence(9, true, &[]).given;
    let got = sum(&student, &[blind, seeing.clone()]);
    assert!(
        (got - expected).abs() / expected < 1e-6,
        "{got}, expected {expected}"
    );
    // A prompt with a place for a picture and none to put there.
    let mut without = seeing.clone();
    without.given = Given::Text;
    assert!(student.loss(&Batch(&[without]), |_| true).is_err());
    // A place of the wrong size.
    let mut small = seeing;
    small.image_at = Some(small.len() - 1);
    assert!(student.loss(&Batch(&[small]), |_| true).is_err());
}

/// What is computed from a store equals what is computed from pixels: the loss, and every gradient
/// above the trunk.
#[test]
fn a_frozen_trunk_is_computed_once() {
    let below = [
        "model.vision_tower.",
        "model.mm_projector.",
        "model.embed_tokens.",
        "model.layers.0.",
        "model.layers.1.",
    ];
    let parameters = Parameters::fresh(5).freeze(&below.map(str::to_owned));
    let student = student(&parameters);
    let both = sequence(1, true, &[&[1, 2, 3], &[4, 5], &[1, 6, 2], &[3]]);
    let top = student
        .trunk_top(&Batch(std::slice::from_ref(&both)))
        .unwrap();
    let mut stored = both.clone();
    stored.given = Given::Hidden(top[0].clone());
    let gradients = |whole: &Sequence| {
        let sequence = whole.part(&[3, 4]).unwrap().0;
        let likely = student.log_likelihoods(&Batch(std::slice::from_ref(&sequence)));
        let reference = likely.unwrap()[0].map(|l| l + 0.5);
        let pair = Preference {
            sequence,
            reference,
        };
        let constants = PreferenceLoss {
            beta: 0.3,
            anchor: 0.2,
        };
        let loss = student.preference_loss(&[pair], constants);
        let loss = loss.unwrap();
        let store = loss.backward().unwrap();
        let values = parameters.trainable().into_iter().map(|(name, var)| {
            let gradient = store.get(&var).unwrap_or_else(|| panic!("{name}"));
            gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        });
        (loss.value, values.collect::<Vec<_>>().concat())
    };
    let ((loss, expected), (again, got)) = (gradients(&both), gradients(&stored));
    assert!((loss - again).abs() < 1e-6, "{loss} {again}");
    assert!(expected.iter().any(|g| g.abs() > 1e-3));
    for (got, expected) in got.iter().zip(&expected) {
        assert!((got - expected).abs() < 1e-5, "{got} {expected}");
    }
}

/// Layers that are computed once more give the loss and every gradient that they give at once; also where
/// the lower ones are frozen, with what lies below them learned or not, and where the trunk's top is known.
#[test]
fn layers_computed_once_more_have_the_same_gradients() {
    let layers = ["model.layers.0.", "model.layers.1."];
    let all = [
        &FROZEN[..],
        &layers,
        &["model.embed_tokens.", "model.mm_projector."],
    ]
    .concat();
    let cuts = [&FROZEN[..], &[&FROZEN[..], &layers].concat(), &all];
    // In bf16, what is added up from two places (the embedding's) is rounded in between.
    let types = [(DType::F32, 1e-5), (DType::BF16, 1e-2)];
    for (frozen, (dtype, most)) in cuts.iter().flat_map(|cut| types.map(|t| (cut, t))) {
        let frozen: Vec<String> = frozen.iter().map(|name| (*name).to_owned()).collect();
        let parameters = Parameters::fresh(5).placed(&Device::Cpu, dtype).unwrap();
        let parameters = parameters.freeze(&frozen);
        let (plain, tight) = (student(&parameters), student(&parameters).recomputing(true));
        let mut batch = vec![
            sequence(1, true, &[&[1, 2, 3], &[4, 5]]),
            sequence(2, false, &[&[6, 7]]),
        ];
        if frozen.len() == all.len() {
            let top = plain.trunk_top(&Batch(&batch)).unwrap();
            for (sequence, top) in batch.iter_mut().zip(top) {
                sequence.given = Given::Hidden(top);
            }
        }
        let found = [&plain, &tight].map(|student| {
            let loss = student.loss(&Batch(&batch), |_| true).unwrap();
            (loss.value, loss.backward().unwrap())
        });
        assert!((found[0].0 - found[1].0).abs() < 1e-6);
        let mut compared = 0;
        for (name, var) in parameters.trainable() {
            let gradients = found.each_ref().map(|(_, store)| {
                let gradient = store.get(&var)?.to_dtype(DType::F32).unwrap();
                Some(gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            });
            let [Some(plain), Some(tight)] = &gradients else {
                assert_eq!(gradients, [None, None], "{name}");
                continue;
            };
            let largest = plain.iter().fold(0f32, |most, v| most.max(v.abs()));
            for (a, b) in plain.iter().zip(tight) {
                assert!((a - b).abs() <= most * largest.max(1e-3), "{name}: {a} {b}");
            }
            compared += 1;
        }
        assert!(compared > 8, "{frozen:?}: {compared}");
    }
}

#[test]
fn features_stand_for_the_pixels_they_were_made_of() {
    let (_, student) = fresh();
    let seeing = sequence(1, true, &[&[1, 2, 3]]);
    let Given::Pixels(pixels) = &seeing.given else {
        panic!("a sequence with an image has pixels");
    };
    let features = student.features(std::slice::from_ref(pixels)).unwrap();
    let mut known = seeing.clone();
    known.given = Given::Features(features.squeeze(0).unwrap());
    let (want, got) = (sum(&student, &[seeing]), sum(&student, &[known]));
    assert!((want - got).abs() / want < 1e-6, "{want} {got}");
}

/// A step may by chance hold no image; the layers that see are then trained by nothing, and that is
/// no error.
#[test]
fn without_an_image_the_projector_has_a_gradient_of_zero() {
    let (parameters, student) = fresh();
    let text = sequence(1, false, &[&[1, 2, 3]]);
    let loss = student.loss(&Batch(&[text]), |_| true).unwrap();
    let store = loss.backward().unwrap();
    for (name, var) in parameters.trainable() {
        let unused = name.contains("post_layernorm");
        let gradient = store.get(&var);
        assert!(unused || gradient.is_some(), "{name}");
        if name.contains("mm_projector") {
            let sum = gradient.unwrap().abs().unwrap().sum_all().unwrap();
            assert!(sum.to_scalar::<f32>().unwrap() == 0.0, "{name}");
        }
    }
}

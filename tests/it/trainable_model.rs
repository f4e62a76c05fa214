//! Tests of the losses and gradients of a tiny model with vision.

use std::sync::Arc;

use acem3_experts::ModelConfig;
use acem3_experts::prompt::PromptToken;
use acem3_experts::train::{
    Batch, DpoLossConfig, Parameters, PreferenceExample, Sequence, SequenceInput, TargetToken,
    TrainableModel, TrainingImage,
};
use acem3_kernels::Activation;
use acem3_projector::{ProjectorConfig, ProjectorKind};
use acem3_vision::{SelectFeature, Selection, TileGrid, VisionConfig, VitVariant};
use candle::backprop::GradStore;
use candle::{DType, Device};

use crate::tiny_panel;

/// Returns the configuration of the tiny model.
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
            variant: VitVariant::default(),
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
        tiling: None,
        decoder: tiny_panel::config(&tiny_panel::tokenizer()),
    }
}

/// Name prefixes of the frozen weights.
pub(crate) const FROZEN_PREFIXES: [&str; 1] = ["model.vision_tower.vision_model.embeddings."];

/// Loads the tiny model from its weights.
pub(crate) fn load_model(parameters: &Parameters) -> TrainableModel {
    TrainableModel::load(&parameters.builder(), &config(), 2).unwrap()
}

/// Creates a sequence from a prompt, with or without an image, and branches whose tokens are all
/// targets. Prompt and image depend on `seed`.
pub(crate) fn sequence(seed: u32, has_image: bool, branches: &[&[u32]]) -> Sequence {
    let prompt = [
        PromptToken::Token(7),
        PromptToken::Image,
        PromptToken::Token(seed),
        PromptToken::Token(9),
    ];
    let pixels: Arc<[f32]> =
        (0..3 * 12 * 12).map(|i| ((i as u32 * (seed + 3)) as f32 * 0.11).sin()).collect();
    let mut sequence = if has_image {
        let (grid, tokens) = (TileGrid::whole((12, 12)), config().input_tokens());
        Sequence::new(&prompt, Some(TrainingImage { pixels, grid, tokens }))
    } else {
        Sequence::new(&[prompt[0], prompt[2]], None)
    };
    for branch in branches {
        sequence.push_branch(branch.iter().map(|token| (*token, 1.0)));
    }
    sequence
}

/// Initialises random weights and loads the model from them.
pub(crate) fn new_model() -> (Parameters, TrainableModel) {
    let parameters = Parameters::uninitialized(5).freeze(&FROZEN_PREFIXES.map(str::to_owned));
    let model = load_model(&parameters);
    (parameters, model)
}

/// Returns the summed loss of sequences.
fn loss_sum(model: &TrainableModel, sequences: &[Sequence]) -> f64 {
    let loss = model.loss(&Batch(sequences), |_| true).unwrap();
    f64::from(loss.surrogate.to_scalar::<f32>().unwrap())
}

/// Returns the names of the trainable weights that have gradients, with their values in both stores.
fn gradient_pairs(
    parameters: &Parameters,
    stores: [&GradStore; 2],
) -> Vec<(String, [Vec<f32>; 2])> {
    let mut pairs = Vec::new();
    for (name, var) in parameters.trainable() {
        let gradients = stores.map(|store| {
            let gradient = store.get(&var)?.to_dtype(DType::F32).unwrap();
            Some(gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        });
        match gradients {
            [Some(first), Some(second)] => pairs.push((name, [first, second])),
            gradients => assert_eq!(gradients, [None, None], "{name}"),
        }
    }
    pairs
}

#[test]
fn loss_of_branches_equals_loss_of_separate_sequences() {
    let (_, model) = new_model();
    let (a, b, c) = ([1, 2, 3], [4, 5], [6, 7, 8, 9]);
    let joined =
        [sequence(1, true, &[&a, &b]), sequence(2, false, &[&c]), sequence(3, true, &[&c, &a, &b])];
    let plain = [
        sequence(1, true, &[&a]),
        sequence(1, true, &[&b]),
        sequence(2, false, &[&c]),
        sequence(3, true, &[&c]),
        sequence(3, true, &[&a]),
        sequence(3, true, &[&b]),
    ];
    let expected: f64 = plain.iter().map(|s| loss_sum(&model, std::slice::from_ref(s))).sum();
    for loss in [loss_sum(&model, &joined), loss_sum(&model, &plain)] {
        assert!((loss - expected).abs() / expected < 1e-6, "{loss}, expected {expected}");
    }
    // Two branches differ from one branch with the same tokens.
    let concatenated: Vec<u32> = [&a[..], &b[..]].concat();
    let concatenated = loss_sum(&model, &[sequence(1, true, &[&concatenated])]);
    assert!((concatenated - loss_sum(&model, &joined[..1])).abs() > 1e-3);
}

#[test]
fn every_sequence_uses_its_own_image() {
    let (_, model) = new_model();
    let with_image = sequence(1, true, &[&[1, 2, 3]]);
    let alone = loss_sum(&model, std::slice::from_ref(&with_image));
    // Pixels of a prompt without an image must not affect other sequences.
    let mut text_only = sequence(2, false, &[&[4, 5]]);
    let expected = alone + loss_sum(&model, std::slice::from_ref(&text_only));
    text_only.input = sequence(9, true, &[]).input;
    let loss = loss_sum(&model, &[text_only, with_image.clone()]);
    assert!((loss - expected).abs() / expected < 1e-6, "{loss}, expected {expected}");
    // A prompt with an image, but a sequence without pixels.
    let mut without_pixels = with_image.clone();
    without_pixels.input = SequenceInput::Text;
    assert!(model.loss(&Batch(&[without_pixels]), |_| true).is_err());
    // Too few image tokens.
    let mut too_short = with_image;
    if let Some(image) = &mut too_short.image {
        image.start = too_short.tokens.len() - 1;
    }
    assert!(model.loss(&Batch(&[too_short]), |_| true).is_err());
}

/// Compares the loss and all gradients above the trunk, from pixels and from cached hidden states.
#[test]
fn cached_trunk_output_gives_same_loss_and_gradients() {
    let frozen = [
        "model.vision_tower.",
        "model.mm_projector.",
        "model.embed_tokens.",
        "model.layers.0.",
        "model.layers.1.",
    ];
    let parameters = Parameters::uninitialized(5).freeze(&frozen.map(str::to_owned));
    let model = load_model(&parameters);
    let from_pixels = sequence(1, true, &[&[1, 2, 3], &[4, 5], &[1, 6, 2], &[3]]);
    let trunk_output = model.trunk_output(&Batch(std::slice::from_ref(&from_pixels))).unwrap();
    let mut from_cache = from_pixels.clone();
    from_cache.input = SequenceInput::Hidden(trunk_output[0].clone());
    let gradients = |sequence: &Sequence| {
        let sequence = sequence.select_branches(&[3, 4]).unwrap().0;
        let log_likelihoods = model.log_likelihoods(&Batch(std::slice::from_ref(&sequence)));
        let reference_log_likelihoods = log_likelihoods.unwrap()[0].map(|l| l + 0.5);
        let pair = PreferenceExample { sequence, reference_log_likelihoods, other_order: None };
        let config = DpoLossConfig { beta: 0.3, nll_weight: 0.2, consistency_weight: 0.0 };
        let loss = model.preference_loss(&[pair], config);
        let loss = loss.unwrap();
        let store = loss.backward().unwrap();
        let values = parameters.trainable().into_iter().map(|(name, var)| {
            let gradient = store.get(&var).unwrap_or_else(|| panic!("{name}"));
            gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        });
        (loss.loss_sum, values.collect::<Vec<_>>().concat())
    };
    let (expected_loss, expected) = gradients(&from_pixels);
    let (loss, found) = gradients(&from_cache);
    assert!((loss - expected_loss).abs() < 1e-6, "{loss} {expected_loss}");
    assert!(expected.iter().any(|g| g.abs() > 1e-3));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

/// Compares the loss and all gradients with and without recomputation: with trainable layers, with
/// frozen lower layers above a trainable embedding, and with a cached output of a frozen trunk.
#[test]
fn recomputation_gives_same_loss_and_gradients() {
    let layers = ["model.layers.0.", "model.layers.1."];
    let all =
        [&FROZEN_PREFIXES[..], &layers, &["model.embed_tokens.", "model.mm_projector."]].concat();
    let frozen_sets = [&FROZEN_PREFIXES[..], &[&FROZEN_PREFIXES[..], &layers].concat(), &all];
    // In bf16 the embedding gradient is a sum of two terms with intermediate rounding.
    let dtypes = [(DType::F32, 1e-5), (DType::BF16, 1e-2)];
    for (frozen, (dtype, tolerance)) in
        frozen_sets.iter().flat_map(|frozen| dtypes.map(|dtype| (frozen, dtype)))
    {
        let frozen: Vec<String> = frozen.iter().map(|name| (*name).to_owned()).collect();
        let parameters = Parameters::uninitialized(5).to_device(&Device::Cpu, dtype).unwrap();
        let parameters = parameters.freeze(&frozen);
        let (plain, recomputing) =
            (load_model(&parameters), load_model(&parameters).with_recomputation(true));
        let mut batch =
            vec![sequence(1, true, &[&[1, 2, 3], &[4, 5]]), sequence(2, false, &[&[6, 7]])];
        if frozen.len() == all.len() {
            let outputs = plain.trunk_output(&Batch(&batch)).unwrap();
            for (sequence, output) in batch.iter_mut().zip(outputs) {
                sequence.input = SequenceInput::Hidden(output);
            }
        }
        let results = [&plain, &recomputing].map(|model| {
            let loss = model.loss(&Batch(&batch), |_| true).unwrap();
            (loss.loss_sum, loss.backward().unwrap())
        });
        assert!((results[0].0 - results[1].0).abs() < 1e-6);
        let mut compared = 0;
        let stores = results.each_ref().map(|(_, store)| store);
        for (name, [plain, recomputed]) in gradient_pairs(&parameters, stores) {
            let largest = plain.iter().fold(0f32, |largest, v| largest.max(v.abs()));
            for (a, b) in plain.iter().zip(&recomputed) {
                let error = (a - b).abs();
                assert!(error <= tolerance * largest.max(1e-3), "{name}: {a} {b}");
            }
            compared += 1;
        }
        assert!(compared > 8, "{frozen:?}: {compared}");
    }
}

#[test]
fn cached_image_features_give_same_loss_as_pixels() {
    let (_, model) = new_model();
    let from_pixels = sequence(1, true, &[&[1, 2, 3]]);
    let SequenceInput::Pixels(pixels) = &from_pixels.input else {
        panic!("a sequence with an image has pixels");
    };
    let features = model.encode_images(std::slice::from_ref(pixels)).unwrap();
    let mut from_features = from_pixels.clone();
    from_features.input = SequenceInput::Features(features.squeeze(0).unwrap());
    let expected = loss_sum(&model, &[from_pixels]);
    let loss = loss_sum(&model, &[from_features]);
    assert!((expected - loss).abs() / expected < 1e-6, "{expected} {loss}");
}

/// The gradient of the consistency loss is that of a cross-entropy: the targets of both predictions are all
/// tokens of the vocabulary, and the weight of a token is the mean of its two probabilities.
#[test]
fn consistency_gradient_equals_that_of_cross_entropy_with_the_mean_prediction() {
    let (parameters, model) = new_model();
    let mut consistent = sequence(1, true, &[]);
    let branches: [Vec<(u32, f32)>; 2] =
        [[1, 2, 3, 9], [3, 2, 1, 9]].map(|tokens| tokens.map(|token| (token, 0.0)).to_vec());
    consistent.push_equal_branches(branches.each_ref().map(Vec::as_slice), 1, 0.5).unwrap();
    // A batch has at least one target. This one has no loss.
    consistent.targets.push(TargetToken { source_index: 0, token: 1, weight: 0.0, branch: 1 });
    let sources = consistent.equal_predictions[0].source_indices;
    let target =
        |source_index, token, weight| TargetToken { source_index, token, weight, branch: 1 };
    let with_targets = |targets: Vec<TargetToken>| {
        let mut sequence = consistent.clone();
        (sequence.equal_predictions, sequence.targets) = (Vec::new(), targets);
        sequence
    };
    let probability = |source_index, token| {
        (-loss_sum(&model, &[with_targets(vec![target(source_index, token, 1.0)])])).exp()
    };
    let (mut targets, mut divergence) = (Vec::new(), 0.0);
    for token in 0..config().decoder.vocab_size as u32 {
        let [p, q] = sources.map(|source| probability(source, token));
        let mean = f64::midpoint(p, q);
        divergence += 0.5 * mean * ((mean / p).ln() + (mean / q).ln());
        targets.extend(sources.map(|source| target(source, token, 0.5 * mean as f32)));
    }
    let results = [consistent.clone(), with_targets(targets)].map(|sequence| {
        let loss = model.loss(&Batch(&[sequence]), |_| true).unwrap();
        (loss.loss_sum, loss.backward().unwrap())
    });
    assert!(divergence > 1e-3, "{divergence}");
    let found = results[0].0;
    assert!((found - divergence).abs() < 1e-4, "{found} {divergence}");
    let mut compared = 0;
    let stores = results.each_ref().map(|(_, store)| store);
    for (name, [found, expected]) in gradient_pairs(&parameters, stores) {
        let largest = expected.iter().fold(0f32, |largest, v| largest.max(v.abs()));
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() <= 1e-3 * largest.max(1e-4), "{name}: {a} {b}");
        }
        compared += usize::from(largest > 1e-4);
    }
    assert!(compared > 8, "{compared}");
}

/// A batch may have no image by chance. Vision tower and projector then need a gradient of zero,
/// because a missing gradient is an error.
#[test]
fn projector_gradient_is_zero_without_images() {
    let (parameters, model) = new_model();
    let text = sequence(1, false, &[&[1, 2, 3]]);
    let loss = model.loss(&Batch(&[text]), |_| true).unwrap();
    let store = loss.backward().unwrap();
    for (name, var) in parameters.trainable() {
        let is_unused = name.contains("post_layernorm");
        let gradient = store.get(&var);
        assert!(is_unused || gradient.is_some(), "{name}");
        if name.contains("mm_projector") {
            let sum = gradient.unwrap().abs().unwrap().sum_all().unwrap();
            assert!(sum.to_scalar::<f32>().unwrap() == 0.0, "{name}");
        }
    }
}

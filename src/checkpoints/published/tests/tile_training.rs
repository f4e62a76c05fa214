//! Tests of training with images in tiles. The script `assets/golden/make_tile_training.py`
//! generates the expected values.

use acem3_experts::prompt::PromptToken;
use acem3_experts::train::{Batch, Parameters, Sequence, SequenceInput, TrainableModel};
use acem3_vision::Tiles;
use candle::Device;

use super::llava_variants::{Values, image_tiles, load_values};
use super::training::{load_training_values, model_config};
use super::{assert_near, load_member, to_token_ids};
use crate::judging::panel::image_encoder::ImageEncoder;

/// Folders and the images that the reference trains on.
const KINDS: [(&str, &[&str]); 3] = [
    ("llava-next", &["odd", "wide", "small"]),
    ("llava-onevision", &["square", "small"]),
    ("internvl", &["odd", "small"]),
];

/// Returns the sequence of an image's prompt and greedy tokens, with the reference's pixels.
fn sequence(folder: &str, values: &Values, name: &str) -> Sequence {
    let member = load_member(folder);
    let (_, images) = model_config(folder);
    let vb = member.weights.builder(&Device::Cpu);
    let encoder = ImageEncoder::load(member.vision.as_ref().unwrap(), &vb, &Device::Cpu).unwrap();
    let (_, Tiles { pixel_values, .. }) = image_tiles(&encoder, values, name);
    let mut image = images.prepare(&super::llava_variants::load_image(name)).unwrap();
    assert_eq!(image.tokens, values[&format!("{name}.image_tokens")].dim(0).unwrap(), "{name}");
    image.pixels = pixel_values.flatten_all().unwrap().to_vec1::<f32>().unwrap().into();
    let text = |part: &str| to_token_ids(&values[part]).into_iter().map(PromptToken::Token);
    let prompt: Vec<PromptToken> =
        text("head").chain([PromptToken::Image]).chain(text("tail")).collect();
    let mut sequence = Sequence::new(&prompt, Some(image));
    let greedy = to_token_ids(&values[&format!("{name}.greedy")]);
    sequence.push_branch(greedy.into_iter().map(|token| (token, 1.0)));
    sequence
}

fn trainable(folder: &str) -> (Parameters, TrainableModel) {
    let member = load_member(folder);
    let tensors = member.weights.tensors.iter();
    let tensors = tensors.map(|(name, stored)| (name.clone(), stored.values.clone()));
    let parameters = Parameters::from_tensors(tensors).unwrap();
    let (config, _) = model_config(folder);
    let model = TrainableModel::load(&parameters.builder(), &config, 1).unwrap();
    (parameters, model)
}

#[test]
fn losses_and_gradients_of_tiles_match_torch() {
    for (folder, names) in KINDS {
        let values = load_values(folder);
        let expected = load_training_values(&format!("tiles-{folder}"));
        let (parameters, model) = trainable(folder);
        let sequences: Vec<Sequence> =
            names.iter().map(|name| sequence(folder, &values, name)).collect();
        let loss = model.loss(&Batch(&sequences), |_| true).unwrap();
        let value = f64::from(expected["loss"].to_vec1::<f32>().unwrap()[0]);
        let difference = (loss.loss_sum / loss.weight_sum - value).abs();
        assert!(difference < 1e-5 * value, "{folder}: {difference}");
        let store = loss.backward().unwrap();
        let trainable = parameters.trainable();
        for (name, gradient) in expected.iter().filter(|(name, _)| *name != "loss") {
            let (_, var) = trainable.iter().find(|(found, _)| found == name).unwrap();
            let actual = (store.get(var).unwrap() / loss.weight_sum).unwrap();
            assert_near(&actual, gradient, &format!("{folder}: {name}"));
        }
    }
}

/// A batch of a text and of images whose features are cached has the loss of the same batch with
/// pixels.
#[test]
fn cached_features_of_tiles_give_same_loss_as_pixels() {
    let (folder, names) = KINDS[0];
    let values = load_values(folder);
    let (parameters, model) = trainable(folder);
    let mut sequences: Vec<Sequence> =
        names.iter().map(|name| sequence(folder, &values, name)).collect();
    let mut text = Sequence::new(&[PromptToken::Token(5), PromptToken::Token(9)], None);
    text.push_branch([(7, 1.0)]);
    sequences.insert(1, text.clone());
    let loss = |sequences: &[Sequence]| {
        let loss = model.loss(&Batch(sequences), |_| true).unwrap();
        loss.loss_sum / loss.weight_sum
    };
    let expected = loss(&sequences);
    for sequence in &mut sequences {
        if let SequenceInput::Pixels(pixels) = &sequence.input {
            let features = model.encode_images(std::slice::from_ref(pixels)).unwrap();
            let rows = sequence.image.unwrap().grid.inputs * model.feature_count();
            let features = features.flatten_to(1).unwrap();
            assert_eq!(features.dim(0).unwrap(), rows);
            sequence.input = SequenceInput::Features(features);
        }
    }
    assert!((loss(&sequences) - expected).abs() < 1e-6 * expected);
    // Without an image, the end of a row has a gradient of zero, not none.
    let store = model.loss(&Batch(&[text]), |_| true).unwrap().backward().unwrap();
    let newline = parameters.trainable().into_iter().find(|(n, _)| n == "model.image_newline");
    let gradient = store.get(&newline.unwrap().1).unwrap().abs().unwrap().sum_all().unwrap();
    assert!(gradient.to_scalar::<f32>().unwrap().abs() < f32::EPSILON);
}

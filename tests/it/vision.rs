//! Vision tower and preprocessing compared with the reference implementations.
//! `assets/golden/make_vision.py` generates the expected values.

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_kernels::Activation;
use acem3_vision::{
    DecodedImage, ImageLimits, ImageProcessor, SelectFeature, Selection, VisionConfig, VisionTower,
    Vit, decode,
};
use candle::{DType, Device, Tensor, Var};
use candle_nn::VarBuilder;

fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/golden/vision").join(name)
}

fn load_tensors(name: &str) -> HashMap<String, Tensor> {
    candle::safetensors::load(golden_path(name), &Device::Cpu).unwrap()
}

fn load_image(name: &str) -> DecodedImage {
    let bytes = std::fs::read(golden_path("images").join(name)).unwrap();
    decode(&bytes, &ImageLimits::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the largest difference divided by the largest magnitude.
fn relative_difference(got: &Tensor, want: &Tensor) -> f32 {
    assert_eq!(got.dims(), want.dims());
    let largest = |t: &Tensor| {
        let t = t.to_dtype(DType::F32).unwrap().abs().unwrap().flatten_all().unwrap();
        t.max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    largest(&(got - want).unwrap()) / largest(want)
}

/// Loads the tiny CLIP: configuration, weights as variables, and all values.
fn load_clip() -> (VisionConfig, HashMap<String, Var>, HashMap<String, Tensor>) {
    let json = std::fs::read_to_string(golden_path("clip.json")).unwrap();
    let values = load_tensors("clip.safetensors");
    let weights = values
        .iter()
        .filter_map(|(name, value)| {
            let name = name.strip_prefix("weight.")?;
            Some((name.to_owned(), Var::from_tensor(value).unwrap()))
        })
        .collect();
    (serde_json::from_str(&json).unwrap(), weights, values)
}

fn var_builder(weights: &HashMap<String, Var>) -> VarBuilder<'static> {
    let weights = weights.iter().map(|(name, var)| (name.clone(), var.as_tensor().clone()));
    VarBuilder::from_tensors(weights.collect(), DType::F32, &Device::Cpu)
}

#[test]
fn hidden_states_match_transformers() {
    let (config, weights, values) = load_clip();
    let activations = [
        (Activation::QuickGelu, "quick_gelu"),
        (Activation::Gelu, "gelu"),
        (Activation::GeluPytorchTanh, "gelu_pytorch_tanh"),
    ];
    for (hidden_act, name) in activations {
        let config = VisionConfig { hidden_act, ..config.clone() };
        let vit = Vit::load(&var_builder(&weights), &config).unwrap();
        let states = vit.hidden_states(&values["pixel_values"], vit.layer_count()).unwrap();
        assert_eq!(states.len(), 3);
        for (i, state) in states.iter().enumerate() {
            let difference = relative_difference(state, &values[&format!("{name}.{i}")]);
            assert!(difference < 1e-5, "{name} {i}: {difference}");
        }
        let pooled = vit.pooled_output(&states[2]).unwrap().unwrap();
        assert!(relative_difference(&pooled, &values[&format!("{name}.pooled")]) < 1e-5);
    }
}

#[test]
fn select_layer_minus_2_is_the_state_before_the_last_block() {
    let (config, weights, values) = load_clip();
    let selection =
        Selection { select_layer: -2, select_feature: SelectFeature::Patch, post_norm: false };
    let tower = VisionTower::load(&var_builder(&weights), &config, selection).unwrap();
    let features = tower.forward(&values["pixel_values"]).unwrap();
    let want = values["quick_gelu.1"].narrow(1, 1, 9).unwrap();
    assert!(relative_difference(&features, &want) < 1e-5);
    assert_eq!(tower.token_count(), 9);
}

#[test]
fn gradients_match_torch() {
    let (config, weights, values) = load_clip();
    let vit = Vit::load(&var_builder(&weights), &config).unwrap();
    let last = vit.hidden_state(&values["pixel_values"], vit.layer_count()).unwrap();
    // `seed` is the gradient of the loss with respect to the last state.
    let grads = (last * &values["seed"]).unwrap().sum_all().unwrap().backward().unwrap();
    let mut compared = 0;
    for (name, want) in &values {
        let Some(name) = name.strip_prefix("grad.") else {
            continue;
        };
        let got = grads.get(&weights[name]).unwrap_or_else(|| panic!("{name} has no gradient"));
        compared += 1;
        if name.ends_with("k_proj.bias") {
            // Zero except for rounding: adding a vector to all keys does not change the softmax.
            let largest = got.abs().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap();
            assert!(largest < 1e-3, "{name}: {largest}");
            continue;
        }
        let difference = relative_difference(got, want);
        assert!(difference < 1e-4, "{name}: {difference}");
    }
    // All weights except the two of the norm after the last layer.
    assert_eq!(compared, weights.len() - 2);
}

#[test]
fn missing_weight_is_named_in_the_error() {
    let (config, mut weights, _) = load_clip();
    weights.remove("embeddings.class_embedding").unwrap();
    let error = Vit::load(&var_builder(&weights), &config).unwrap_err().to_string();
    assert!(error.contains("class_embedding"), "{error}");
}

#[test]
fn decoded_images_match_pillow() {
    let expected = load_tensors("images.safetensors");
    assert!(expected.len() > 35);
    for (name, want) in expected {
        let got = load_image(&name);
        assert_eq!(want.dims(), [got.height(), got.width(), 3], "{name}");
        let want = want.flatten_all().unwrap().to_vec1::<u8>().unwrap();
        let differences = want.iter().zip(got.data()).map(|(a, b)| a.abs_diff(*b));
        let (worst, sum) =
            differences.fold((0, 0u32), |(worst, sum), d| (worst.max(d), sum + u32::from(d)));
        let mean = f64::from(sum) / want.len() as f64;
        // JPEG decoders round the inverse DCT and the chroma upsampling differently.
        let (max_difference, max_mean) = match name.rsplit_once('.') {
            Some((_, "jpg")) => (4, 0.5),
            _ => (0, 0.),
        };
        assert!(worst <= max_difference && mean <= max_mean, "{name}: worst {worst}, mean {mean}");
    }
}

#[test]
fn orientation_is_reported() {
    let rotated = load_image("turned.jpg");
    assert_eq!((rotated.orientation(), rotated.stored_size()), (6, (23, 17)));
    assert_eq!((rotated.width(), rotated.height()), (17, 23));
    assert_eq!(load_image("mirrored.jpg").orientation(), 5);
    assert_eq!(load_image("plain.jpg").orientation(), 1);
}

#[test]
fn resized_images_equal_pillow() {
    let mixed = load_image("mixed.png");
    let mut compared = 0;
    for (name, want) in load_tensors("resized.safetensors") {
        let Some((filter, size)) = name.split_once('.') else {
            continue;
        };
        let (width, height) = size.split_once('x').unwrap();
        let resample = if filter == "bicubic" { 3 } else { 2 };
        let json = format!(
            r#"{{"size": {{"height": {height}, "width": {width}}}, "resample": {resample}}}"#
        );
        let processor: ImageProcessor = serde_json::from_str(&json).unwrap();
        let resized = processor.pad_resize_crop(&mixed).unwrap();
        let want = want.flatten_all().unwrap().to_vec1::<u8>().unwrap();
        assert_eq!(resized.data(), want, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 10);
}

#[test]
fn pixel_values_match_clip_and_llava() {
    let mixed = load_image("mixed.png");
    let expected = load_tensors("resized.safetensors");
    let settings = [
        ("clip", r#"{"size": {"shortest_edge": 20}, "crop_size": 16}"#),
        ("llava", r#"{"size": {"height": 20, "width": 20}, "pad": "square"}"#),
    ];
    for (name, json) in settings {
        let processor: ImageProcessor = serde_json::from_str(json).unwrap();
        let values = processor.preprocess(&mixed).unwrap();
        assert!(relative_difference(&values, &expected[name]) < 1e-6, "{name}");
    }
}

//! Vision against the reference implementations: `assets/golden/make_vision.py` says how the values were made.

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_kernels::Activation;
use acem3_vision::{
    DecodedImage, ImageProcessor, Limits, SelectFeature, Selection, VisionConfig, VisionTower, Vit,
    decode,
};
use candle::{DType, Device, Tensor, Var};
use candle_nn::VarBuilder;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("assets/golden/vision")
        .join(name)
}

fn tensors(name: &str) -> HashMap<String, Tensor> {
    candle::safetensors::load(golden(name), &Device::Cpu).unwrap()
}

fn image(name: &str) -> DecodedImage {
    let bytes = std::fs::read(golden("images").join(name)).unwrap();
    decode(&bytes, &Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The largest difference over the largest magnitude.
fn distance(got: &Tensor, want: &Tensor) -> f32 {
    assert_eq!(got.dims(), want.dims());
    let largest = |t: &Tensor| {
        let t = t
            .to_dtype(DType::F32)
            .unwrap()
            .abs()
            .unwrap()
            .flatten_all()
            .unwrap();
        t.max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    largest(&(got - want).unwrap()) / largest(want)
}

/// The tiny CLIP: its configuration, its weights as variables, and all values.
fn clip() -> (VisionConfig, HashMap<String, Var>, HashMap<String, Tensor>) {
    let json = std::fs::read_to_string(golden("clip.json")).unwrap();
    let values = tensors("clip.safetensors");
    let weights = values
        .iter()
        .filter_map(|(name, value)| {
            let name = name.strip_prefix("weight.")?;
            Some((name.to_owned(), Var::from_tensor(value).unwrap()))
        })
        .collect();
    (serde_json::from_str(&json).unwrap(), weights, values)
}

fn builder(weights: &HashMap<String, Var>) -> VarBuilder<'static> {
    let weights = weights
        .iter()
        .map(|(name, var)| (name.clone(), var.as_tensor().clone()));
    VarBuilder::from_tensors(weights.collect(), DType::F32, &Device::Cpu)
}

#[test]
fn every_hidden_state_is_that_of_transformers() {
    let (config, weights, values) = clip();
    let acts = [
        (Activation::QuickGelu, "quick_gelu"),
        (Activation::Gelu, "gelu"),
        (Activation::GeluPytorchTanh, "gelu_pytorch_tanh"),
    ];
    for (hidden_act, name) in acts {
        let config = VisionConfig {
            hidden_act,
            ..config.clone()
        };
        let vit = Vit::load(&builder(&weights), &config).unwrap();
        let states = vit
            .hidden_states(&values["pixel_values"], vit.layers())
            .unwrap();
        assert_eq!(states.len(), 3);
        for (i, state) in states.iter().enumerate() {
            let far = distance(state, &values[&format!("{name}.{i}")]);
            assert!(far < 1e-5, "{name} {i}: {far}");
        }
        let pooled = vit.pooled(&states[2]).unwrap().unwrap();
        assert!(distance(&pooled, &values[&format!("{name}.pooled")]) < 1e-5);
    }
}

#[test]
fn the_last_but_one_layer_is_the_one_llava_takes() {
    let (config, weights, values) = clip();
    let selection = Selection {
        select_layer: -2,
        select_feature: SelectFeature::Patch,
        post_norm: false,
    };
    let tower = VisionTower::load(&builder(&weights), &config, selection).unwrap();
    let features = tower.forward(&values["pixel_values"]).unwrap();
    let want = values["quick_gelu.1"].narrow(1, 1, 9).unwrap();
    assert!(distance(&features, &want) < 1e-5);
    assert_eq!(tower.tokens(), 9);
}

#[test]
fn every_gradient_is_that_of_torch() {
    let (config, weights, values) = clip();
    let vit = Vit::load(&builder(&weights), &config).unwrap();
    let last = vit
        .hidden_state(&values["pixel_values"], vit.layers())
        .unwrap();
    let grads = (last * &values["seed"])
        .unwrap()
        .sum_all()
        .unwrap()
        .backward()
        .unwrap();
    let mut compared = 0;
    for (name, want) in &values {
        let Some(name) = name.strip_prefix("grad.") else {
            continue;
        };
        let got = grads
            .get(&weights[name])
            .unwrap_or_else(|| panic!("{name} has no gradient"));
        compared += 1;
        if name.ends_with("k_proj.bias") {
            // Zero but for rounding: softmax does not see what is added to all keys alike.
            let largest = got
                .abs()
                .unwrap()
                .max(0)
                .unwrap()
                .to_scalar::<f32>()
                .unwrap();
            assert!(largest < 1e-3, "{name}: {largest}");
            continue;
        }
        let far = distance(got, want);
        assert!(far < 1e-4, "{name}: {far}");
    }
    // Everything but the norm after the last layer.
    assert_eq!(compared, weights.len() - 2);
}

#[test]
fn a_missing_weight_is_an_error_that_names_it() {
    let (config, mut weights, _) = clip();
    weights.remove("embeddings.class_embedding").unwrap();
    let error = Vit::load(&builder(&weights), &config)
        .unwrap_err()
        .to_string();
    assert!(error.contains("class_embedding"), "{error}");
}

#[test]
fn every_kind_of_file_is_seen_as_pillow_sees_it() {
    let expected = tensors("images.safetensors");
    assert!(expected.len() > 35);
    for (name, want) in expected {
        let got = image(&name);
        assert_eq!(want.dims(), [got.height(), got.width(), 3], "{name}");
        let want = want.flatten_all().unwrap().to_vec1::<u8>().unwrap();
        let differences = want.iter().zip(got.data()).map(|(a, b)| a.abs_diff(*b));
        let (worst, sum) = differences.fold((0, 0u32), |(worst, sum), d| {
            (worst.max(d), sum + u32::from(d))
        });
        let mean = f64::from(sum) / want.len() as f64;
        // The decoders' inverse cosine transforms and their smoothing of colour round differently.
        let (most, mean_most) = match name.rsplit_once('.') {
            Some((_, "jpg")) => (4, 0.5),
            _ => (0, 0.),
        };
        assert!(
            worst <= most && mean <= mean_most,
            "{name}: worst {worst}, mean {mean}"
        );
    }
}

#[test]
fn orientation_is_reported() {
    let turned = image("turned.jpg");
    assert_eq!((turned.orientation(), turned.stored_size()), (6, (23, 17)));
    assert_eq!((turned.width(), turned.height()), (17, 23));
    assert_eq!(image("mirrored.jpg").orientation(), 5);
    assert_eq!(image("plain.jpg").orientation(), 1);
}

#[test]
fn resizing_is_pillows_to_the_last_bit() {
    let mixed = image("mixed.png");
    let mut compared = 0;
    for (name, want) in tensors("resized.safetensors") {
        let Some((filter, size)) = name.split_once('.') else {
            continue;
        };
        let (width, height) = size.split_once('x').unwrap();
        let resample = if filter == "bicubic" { 3 } else { 2 };
        let json = format!(
            r#"{{"size": {{"height": {height}, "width": {width}}}, "resample": {resample}}}"#
        );
        let processor: ImageProcessor = serde_json::from_str(&json).unwrap();
        let seen = processor.view(&mixed).unwrap();
        let want = want.flatten_all().unwrap().to_vec1::<u8>().unwrap();
        assert_eq!(seen.data(), want, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 10);
}

#[test]
fn pixel_values_are_those_of_clip_and_llava() {
    let mixed = image("mixed.png");
    let expected = tensors("resized.safetensors");
    let settings = [
        (
            "clip",
            r#"{"size": {"shortest_edge": 20}, "crop_size": 16}"#,
        ),
        (
            "llava",
            r#"{"size": {"height": 20, "width": 20}, "pad": "square"}"#,
        ),
    ];
    for (name, json) in settings {
        let processor: ImageProcessor = serde_json::from_str(json).unwrap();
        let values = processor.preprocess(&mixed).unwrap();
        assert!(distance(&values, &expected[name]) < 1e-6, "{name}");
    }
}

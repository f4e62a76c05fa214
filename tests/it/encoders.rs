//! Published encoders compared with the reference implementations. `assets/golden/make_encoders.py` generates the
//! expected values.

#![expect(
    clippy::print_stdout,
    reason = "prints measurements and the reason for skipped tests"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use acem3_vision::published::{Files, any_res, image_processor};
use acem3_vision::{
    DecodedImage, Encoder, Form, Layout, Limits, Published, Renaming, SelectFeature, Selection,
    Tiles, VisionConfig, VisionTower, decode,
};
use candle::{DType, Device, IndexOp, Tensor};
use candle_nn::VarBuilder;
use serde_json::Value;

pub(crate) type Tensors = HashMap<String, Tensor>;

pub(crate) fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/golden")
}

pub(crate) fn tensors(path: &Path) -> Tensors {
    candle::safetensors::load(path, &Device::Cpu).unwrap()
}

fn json(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// Reads the configuration files of a folder.
pub(crate) fn open(folder: &Path) -> Published {
    let file = |name: &str| json(&folder.join(name));
    let (config, open_clip) = (file("config.json"), file("open_clip_config.json"));
    let preprocessor = file("preprocessor_config.json");
    let files = Files {
        config: config.as_ref(),
        open_clip_config: open_clip.as_ref(),
        preprocessor_config: preprocessor.as_ref(),
    };
    Published::open(&files).unwrap()
}

/// Loads the encoder of a folder and checks that it uses every tensor of the file.
pub(crate) fn weights(folder: &Path, published: &Published) -> Tensors {
    let stored = tensors(&folder.join(published.layout.files()[0]));
    let names = stored.keys().map(String::as_str);
    let renaming = Renaming::find(published.layout, names).unwrap();
    renaming.weights(&published.config, stored).unwrap()
}

fn load(folder: &Path, published: &Published) -> VisionTower {
    let weights = weights(folder, published);
    let vb = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
    published.load(&vb, published.selection()).unwrap()
}

/// Returns the largest difference divided by the largest magnitude.
pub(crate) fn distance(got: &Tensor, want: &Tensor) -> f32 {
    assert_eq!(got.dims(), want.dims());
    let largest = |t: &Tensor| {
        let t = t.abs().unwrap().flatten_all().unwrap();
        t.max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    largest(&(got - want).unwrap()) / largest(want)
}

/// Compares all states, the final outputs and the selected features; returns the largest distance.
pub(crate) fn compare(tower: &VisionTower, values: &Tensors, most: f32) -> f32 {
    let pixels = &values["pixel_values"];
    let layers = tower.config().num_hidden_layers;
    let states = tower.vit().hidden_states(pixels, layers).unwrap();
    let mut worst = 0f32;
    let mut hold = |name: &str, got: &Tensor, want: &Tensor| {
        let far = distance(got, want);
        assert!(far < most, "{name}: {far}");
        worst = worst.max(far);
    };
    assert!(!values.contains_key(&format!("state.{}", layers + 1)));
    for (i, state) in states.iter().enumerate() {
        let name = format!("state.{i}");
        hold(&name, state, &values[&name]);
    }
    let normed = tower.vit().normed(&states[layers]).unwrap();
    hold("normed", &normed, &values["normed"]);
    if let Some(want) = values.get("pooled") {
        let pooled = tower.vit().pooled(&states[layers]).unwrap().unwrap();
        hold("pooled", &pooled, want);
    }
    let selected = if tower.selection().post_norm {
        values["normed"].clone()
    } else {
        values[&format!("state.{}", layers - 1)].clone()
    };
    let selected = selected.i((.., tower.config().class_tokens()..)).unwrap();
    let features = tower.features(pixels).unwrap();
    assert_eq!(features.dim(1).unwrap(), Encoder::tokens(tower));
    hold("features", &features, &selected);
    worst
}

#[test]
fn encoder_states_match_reference() {
    let cases = [
        ("clip", Layout::Clip),
        ("siglip", Layout::Siglip),
        ("open-clip", Layout::OpenClip),
        ("biomedclip", Layout::OpenClipTimm),
    ];
    for (name, layout) in cases {
        let folder = golden().join("encoders").join(name);
        let mut published = open(&folder);
        assert_eq!(published.layout, layout);
        if name == "biomedclip" {
            // The file names a full-size trunk; the script created a smaller one.
            assert_eq!(published.config.sequence(), 197);
            published.config = VisionConfig {
                hidden_size: 24,
                intermediate_size: 48,
                num_hidden_layers: 2,
                num_attention_heads: 3,
                image_size: 16,
                patch_size: 4,
                ..published.config
            };
        }
        let tower = load(&folder, &published);
        let worst = compare(&tower, &tensors(&folder.join("values.safetensors")), 1e-5);
        println!("{name}: {worst:e}");
    }
}

#[test]
fn dinov2_interpolates_positions_to_other_grids() {
    let folder = golden().join("encoders/dinov2");
    let published = open(&folder);
    assert_eq!(published.layout, Layout::Dinov2);
    // The processor's images are smaller than the grid of the position embeddings.
    assert_eq!(published.config.image_size, 16);
    assert_eq!(published.config.form.position_grid, Some(5));
    for side in [16, 20, 30] {
        let mut published = published.clone();
        published.config = VisionConfig {
            image_size: side,
            form: Form {
                position_grid: Some(5),
                ..published.config.form
            },
            ..published.config
        };
        let tower = load(&folder, &published);
        let values = tensors(&folder.join(format!("values-{side}.safetensors")));
        let worst = compare(&tower, &values, 1e-5);
        println!("dinov2 at {side}: {worst:e}");
    }
}

#[test]
fn feature_selection_without_its_norm_is_an_error() {
    let folder = golden().join("encoders/clip");
    let published = open(&folder);
    let stored = tensors(&folder.join("model.safetensors"));
    let names = stored.keys().map(String::as_str);
    let renaming = Renaming::find(Layout::Clip, names).unwrap();
    let mut weights = renaming.weights(&published.config, stored).unwrap();
    weights.remove("post_layernorm.weight").unwrap();
    let vb = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
    let config = VisionConfig {
        form: Form::default(),
        ..published.config
    };
    let selection = Selection {
        select_layer: -1,
        select_feature: SelectFeature::Patch,
        post_norm: true,
    };
    let error = VisionTower::load(&vb, &config, selection).unwrap_err();
    assert!(error.to_string().contains("`post_norm`"), "{error}");
}

fn image(name: &str) -> DecodedImage {
    let path = match name {
        "mixed" => golden().join("vision/images/mixed.png"),
        name => golden().join(format!("encoders/{name}.png")),
    };
    decode(&std::fs::read(path).unwrap(), &Limits::default()).unwrap()
}

/// Returns the largest difference in grey levels, and the proportion of values that differ by more than rounding.
fn levels(got: &Tensor, want: &Tensor, std: [f64; 3]) -> (f64, f64) {
    assert_eq!(got.dims(), want.dims());
    let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let plane = got.dims().iter().rev().take(2).product::<usize>();
    let (mut worst, mut differ) = (0f64, 0usize);
    let (got, want) = (flat(got), flat(want));
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        let level = f64::from((got - want).abs()) * std[i / plane % 3] * 255.;
        worst = worst.max(level);
        differ += usize::from(level > 1e-3);
    }
    (worst, differ as f64 / got.len() as f64)
}

#[test]
fn pixel_values_match_reference_processors() {
    let files = json(&golden().join("encoders/processors.json")).unwrap();
    let expected = tensors(&golden().join("encoders/processors.safetensors"));
    assert!(expected.len() > 20);
    let mut names: Vec<&String> = expected.keys().collect();
    names.sort();
    let mut wrong = Vec::new();
    for name in names {
        let parts: Vec<&str> = name.split('.').collect();
        let [processor, backend, drawn] = parts.as_slice() else {
            panic!("{name}");
        };
        let (file, picture) = (&files[*processor], image(drawn));
        let (values, std) = if *processor == "llava-next" {
            let any_res = any_res(file).unwrap();
            let std = image_processor(file, Layout::Clip).unwrap().image_std;
            (any_res.preprocess(&picture).unwrap().pixel_values, std)
        } else {
            let processor = if file.get("model_cfg").is_some() {
                let files = Files {
                    open_clip_config: Some(file),
                    ..Files::default()
                };
                Published::open(&files).unwrap().processor
            } else {
                image_processor(file, Layout::Clip).unwrap()
            };
            (processor.preprocess(&picture).unwrap(), processor.image_std)
        };
        let (worst, differ) = levels(&values, &expected[name], std);
        // Equal to Pillow to the last bit, except for the order of the passes: since Pillow 13, tall images are
        // resized vertically first. Torch resizes horizontally first and rounds its weights to fewer bits.
        let most_differ = match (*backend, *drawn) {
            ("pil", "mixed") => 0.,
            ("pil", _) => 0.3,
            _ => 0.01,
        };
        let most = if most_differ > 0. { 1.001 } else { 1e-3 };
        println!("{name}: at most {worst:.4} levels, {differ:.4} of the values");
        if worst > most || differ > most_differ {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn llava_next_tiles_match_reference() {
    let rows = json(&golden().join("encoders/resolutions.json")).unwrap();
    let files = json(&golden().join("encoders/processors.json")).unwrap();
    let mut file = files["llava-next"].clone();
    file["image_grid_pinpoints"] = Value::Null;
    file["size"] = 336.into();
    file["crop_size"] = 336.into();
    let any_res = any_res(&file).unwrap();
    let rows: Vec<[usize; 8]> = serde_json::from_value(rows).unwrap();
    assert_eq!(rows.len(), 300);
    for [height, width, high, wide, top, left, bottom, right] in rows {
        assert_eq!(any_res.resolution(height, width), (high, wide));
        let tiles = Tiles {
            pixel_values: Tensor::zeros(1, DType::F32, &Device::Cpu).unwrap(),
            grid: (high / 336, wide / 336),
            image: (height, width),
        };
        let kept = (top..bottom, left..right);
        assert_eq!(tiles.unpadded(24), kept, "{height} x {width}");
    }
}

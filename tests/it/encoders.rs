//! Published encoders compared with the reference implementations. `assets/golden/make_encoders.py`
//! generates the expected values.

#![expect(clippy::print_stdout, reason = "prints measurements and the reason for skipped tests")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use acem3_vision::published::{EncoderFiles, read_any_res, read_image_processor};
use acem3_vision::{
    DecodedImage, Encoder, EncoderLayout, ImageLimits, PublishedEncoder, RegionRounding,
    SelectFeature, Selection, TensorRenaming, TileGrid, VisionConfig, VisionTower, VitVariant,
    decode,
};
use candle::{DType, Device, IndexOp, Tensor};
use candle_nn::VarBuilder;
use serde_json::Value;

/// Tensors by name.
pub(crate) type Tensors = HashMap<String, Tensor>;

/// Returns the folder of reference values.
pub(crate) fn golden_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/golden")
}

pub(crate) fn load_tensors(path: &Path) -> Tensors {
    candle::safetensors::load(path, &Device::Cpu).unwrap()
}

/// Reads a JSON file, or returns `None` if it does not exist.
fn read_json(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// Reads the configuration files of a folder.
pub(crate) fn open_encoder(folder: &Path) -> PublishedEncoder {
    let file = |name: &str| read_json(&folder.join(name));
    let (config, open_clip) = (file("config.json"), file("open_clip_config.json"));
    let preprocessor = file("preprocessor_config.json");
    let files = EncoderFiles {
        config: config.as_ref(),
        open_clip_config: open_clip.as_ref(),
        preprocessor_config: preprocessor.as_ref(),
    };
    PublishedEncoder::from_files(&files).unwrap()
}

/// Loads the weights of a folder and checks that the encoder uses every tensor of the file.
pub(crate) fn load_weights(folder: &Path, published: &PublishedEncoder) -> Tensors {
    let stored = load_tensors(&folder.join(published.layout.weight_files()[0]));
    let names = stored.keys().map(String::as_str);
    let renaming = TensorRenaming::find(published.layout, names).unwrap();
    renaming.rename_tensors(&published.config, stored).unwrap()
}

fn load_encoder(folder: &Path, published: &PublishedEncoder) -> VisionTower {
    let weights = load_weights(folder, published);
    let vb = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
    published.load(&vb, published.default_selection()).unwrap()
}

/// Returns the largest difference divided by the largest magnitude.
pub(crate) fn relative_difference(got: &Tensor, want: &Tensor) -> f32 {
    assert_eq!(got.dims(), want.dims());
    let largest = |t: &Tensor| {
        let t = t.abs().unwrap().flatten_all().unwrap();
        t.max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    largest(&(got - want).unwrap()) / largest(want)
}

/// Compares all hidden states, the final outputs and the selected features. Returns the largest
/// relative difference.
pub(crate) fn assert_matches_reference(
    tower: &VisionTower,
    values: &Tensors,
    tolerance: f32,
) -> f32 {
    let pixels = &values["pixel_values"];
    let layers = tower.config().num_hidden_layers;
    let states = tower.vit().hidden_states(pixels, layers).unwrap();
    let mut worst = 0f32;
    let mut assert_near = |name: &str, got: &Tensor, want: &Tensor| {
        let difference = relative_difference(got, want);
        assert!(difference < tolerance, "{name}: {difference}");
        worst = worst.max(difference);
    };
    assert!(!values.contains_key(&format!("state.{}", layers + 1)));
    for (i, state) in states.iter().enumerate() {
        let name = format!("state.{i}");
        assert_near(&name, state, &values[&name]);
    }
    let normed = tower.vit().apply_post_norm(&states[layers]).unwrap();
    assert_near("normed", &normed, &values["normed"]);
    if let Some(want) = values.get("pooled") {
        let pooled = tower.vit().pooled_output(&states[layers]).unwrap().unwrap();
        assert_near("pooled", &pooled, want);
    }
    let selected = if tower.selection().post_norm {
        values["normed"].clone()
    } else {
        values[&format!("state.{}", layers - 1)].clone()
    };
    let selected = selected.i((.., tower.config().class_token_count()..)).unwrap();
    let features = tower.encode(pixels).unwrap();
    assert_eq!(features.dim(1).unwrap(), Encoder::token_count(tower));
    assert_near("features", &features, &selected);
    worst
}

#[test]
fn encoder_states_match_reference() {
    let cases = [
        ("clip", EncoderLayout::Clip),
        ("siglip", EncoderLayout::Siglip),
        ("open-clip", EncoderLayout::OpenClip),
        ("biomedclip", EncoderLayout::OpenClipTimm),
    ];
    for (name, layout) in cases {
        let folder = golden_folder().join("encoders").join(name);
        let mut published = open_encoder(&folder);
        assert_eq!(published.layout, layout);
        if name == "biomedclip" {
            // The file configures a full-size trunk, but the script created a smaller one.
            assert_eq!(published.config.sequence_length(), 197);
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
        let tower = load_encoder(&folder, &published);
        let worst = assert_matches_reference(
            &tower,
            &load_tensors(&folder.join("values.safetensors")),
            1e-5,
        );
        println!("{name}: {worst:e}");
    }
}

#[test]
fn dinov2_interpolates_positions_to_other_grids() {
    let folder = golden_folder().join("encoders/dinov2");
    let published = open_encoder(&folder);
    assert_eq!(published.layout, EncoderLayout::Dinov2);
    // The processor's images are smaller than the grid of the position embeddings.
    assert_eq!(published.config.image_size, 16);
    assert_eq!(published.config.variant.position_grid, Some(5));
    for side in [16, 20, 30] {
        let mut published = published.clone();
        published.config = VisionConfig {
            image_size: side,
            variant: VitVariant { position_grid: Some(5), ..published.config.variant },
            ..published.config
        };
        let tower = load_encoder(&folder, &published);
        let values = load_tensors(&folder.join(format!("values-{side}.safetensors")));
        let worst = assert_matches_reference(&tower, &values, 1e-5);
        println!("dinov2 at {side}: {worst:e}");
    }
}

#[test]
fn feature_selection_without_its_norm_is_an_error() {
    let folder = golden_folder().join("encoders/clip");
    let published = open_encoder(&folder);
    let stored = load_tensors(&folder.join("model.safetensors"));
    let names = stored.keys().map(String::as_str);
    let renaming = TensorRenaming::find(EncoderLayout::Clip, names).unwrap();
    let mut weights = renaming.rename_tensors(&published.config, stored).unwrap();
    weights.remove("post_layernorm.weight").unwrap();
    let vb = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
    let config = VisionConfig { variant: VitVariant::default(), ..published.config };
    let selection =
        Selection { select_layer: -1, select_feature: SelectFeature::Patch, post_norm: true };
    let error = VisionTower::load(&vb, &config, selection).unwrap_err();
    assert!(error.to_string().contains("`post_norm`"), "{error}");
}

fn load_image(name: &str) -> DecodedImage {
    let path = match name {
        "mixed" => golden_folder().join("vision/images/mixed.png"),
        name => golden_folder().join(format!("encoders/{name}.png")),
    };
    decode(&std::fs::read(path).unwrap(), &ImageLimits::default()).unwrap()
}

/// Returns the largest difference in grey levels, and the proportion of values that differ by more
/// than 0.001 levels.
fn compare_levels(got: &Tensor, want: &Tensor, std: [f64; 3]) -> (f64, f64) {
    assert_eq!(got.dims(), want.dims());
    let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let plane = got.dims().iter().rev().take(2).product::<usize>();
    let (mut worst, mut different) = (0f64, 0usize);
    let (got, want) = (flat(got), flat(want));
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        let level = f64::from((got - want).abs()) * std[i / plane % 3] * 255.;
        worst = worst.max(level);
        different += usize::from(level > 1e-3);
    }
    (worst, different as f64 / got.len() as f64)
}

#[test]
fn pixel_values_match_reference_processors() {
    let files = read_json(&golden_folder().join("encoders/processors.json")).unwrap();
    let expected = load_tensors(&golden_folder().join("encoders/processors.safetensors"));
    assert!(expected.len() > 20);
    let mut names: Vec<&String> = expected.keys().collect();
    names.sort();
    let mut failed = Vec::new();
    for name in names {
        let parts: Vec<&str> = name.split('.').collect();
        let [processor, backend, image] = parts.as_slice() else {
            panic!("{name}");
        };
        let (file, picture) = (&files[*processor], load_image(image));
        let (values, std) = if *processor == "llava-next" {
            let any_res = read_any_res(file).unwrap();
            let std = read_image_processor(file, EncoderLayout::Clip).unwrap().image_std;
            (any_res.preprocess(&picture).unwrap().pixel_values, std)
        } else {
            let processor = if file.get("model_cfg").is_some() {
                let files =
                    EncoderFiles { open_clip_config: Some(file), ..EncoderFiles::default() };
                PublishedEncoder::from_files(&files).unwrap().processor
            } else {
                read_image_processor(file, EncoderLayout::Clip).unwrap()
            };
            (processor.preprocess(&picture).unwrap(), processor.image_std)
        };
        let (worst, different) = compare_levels(&values, &expected[name], std);
        // Results equal Pillow's if both resize in the same order of dimensions. Since Pillow 13,
        // tall images are resized vertically first. Torch resizes horizontally first and rounds its
        // weights to fewer bits.
        let max_different = match (*backend, *image) {
            ("pil", "mixed") => 0.,
            ("pil", _) => 0.3,
            _ => 0.01,
        };
        let max_levels = if max_different > 0. { 1.001 } else { 1e-3 };
        println!("{name}: at most {worst:.4} levels, {different:.4} of the values differ");
        if worst > max_levels || different > max_different {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn llava_next_tiles_match_reference() {
    let rows = read_json(&golden_folder().join("encoders/resolutions.json")).unwrap();
    let files = read_json(&golden_folder().join("encoders/processors.json")).unwrap();
    let mut file = files["llava-next"].clone();
    file["image_grid_pinpoints"] = Value::Null;
    file["size"] = 336.into();
    file["crop_size"] = 336.into();
    let any_res = read_any_res(&file).unwrap();
    let rows: Vec<[usize; 8]> = serde_json::from_value(rows).unwrap();
    assert_eq!(rows.len(), 300);
    for [height, width, best_height, best_width, top, left, bottom, right] in rows {
        assert_eq!(any_res.best_resolution(height, width), (best_height, best_width));
        let (rows, columns) = (best_height / 336, best_width / 336);
        let image_size = (height, width);
        let grid = TileGrid { inputs: 1 + rows * columns, rows, columns, image_size };
        let content = (top..bottom, left..right);
        let found = grid.content_region(24, RegionRounding::Decimals);
        assert_eq!(found, content, "{height} x {width}");
    }
}

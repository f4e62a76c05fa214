//! `preprocessor_config.json` of `transformers`.

use serde_json::{Value, json};

use super::error::PublishedError;
use super::json_section::JsonSection;
use super::layout::EncoderLayout;
use crate::processor::{AnyRes, CropSize, ImageProcessor, Pad, ResizeSize, Tiling};
use crate::resample::Resample;

const FILE: &str = "preprocessor_config.json";

/// Reads the image processor from a parsed `preprocessor_config.json`.
///
/// Missing fields have the defaults of the file's image processor class; without a class, of the
/// layout's class. Ignores fields that do not affect pixels. Unsupported values are errors.
pub fn read_image_processor(
    file: &Value,
    layout: EncoderLayout,
) -> Result<ImageProcessor, PublishedError> {
    let (section, class) = processor_section(file, layout)?;
    let clip = ImageProcessor {
        do_center_crop: Some(true),
        crop_size: Some(CropSize::Number(224)),
        ..ImageProcessor::default()
    };
    let mut processor = match class.as_str() {
        "CLIP" | "Bit" | "Llava" | "LlavaNext" => clip,
        "LlavaOnevision" => ImageProcessor {
            size: ResizeSize::Exact { height: 384, width: 384 },
            ..ImageProcessor::default()
        },
        "Siglip" | "Gemma3" => ImageProcessor {
            resample: if class == "Gemma3" { Resample::Bilinear } else { Resample::Bicubic },
            size: ResizeSize::Exact { height: 224, width: 224 },
            do_center_crop: Some(false),
            image_mean: [0.5; 3],
            image_std: [0.5; 3],
            ..ImageProcessor::default()
        },
        // The image processor of `InternVL`.
        "GotOcr2" if layout == EncoderLayout::InternVl => ImageProcessor {
            size: ResizeSize::Exact { height: 384, width: 384 },
            do_center_crop: Some(false),
            ..ImageProcessor::default()
        },
        other => {
            let problem = format!(
                "is \"{other}\", expected an image processor of CLIP, Siglip, Bit, Llava, LlavaNext, \
                 LlavaOnevision, Gemma3 or (with InternVL) GotOcr2"
            );
            return Err(section.field_error("image_processor_type", problem));
        }
    };
    let do_pad = section.get::<bool>("do_pad")?.unwrap_or(false);
    if class == "Llava" && do_pad {
        processor.pad = Pad::Square;
    }
    check_size_keys(&section, "size", &[&["shortest_edge"], &["height", "width"]])?;
    check_size_keys(&section, "crop_size", &[&["height", "width"]])?;
    section.read_into("do_resize", &mut processor.do_resize)?;
    section.read_into("size", &mut processor.size)?;
    section.read_into("resample", &mut processor.resample)?;
    if class == "Gemma3" {
        // Crops of elongated images as further images, which the reference leaves out by default.
        section.expect_value("do_pan_and_scan", &json!(false))?;
    }
    if matches!(class.as_str(), "Siglip" | "GotOcr2" | "Gemma3") {
        // These processors never crop.
        section.expect_value("do_center_crop", &json!(false))?;
    } else {
        section.read_into("do_center_crop", &mut processor.do_center_crop)?;
        section.read_into("crop_size", &mut processor.crop_size)?;
    }
    section.read_into("do_rescale", &mut processor.do_rescale)?;
    section.read_into("rescale_factor", &mut processor.rescale_factor)?;
    section.read_into("do_normalize", &mut processor.do_normalize)?;
    section.read_into("image_mean", &mut processor.image_mean)?;
    section.read_into("image_std", &mut processor.image_std)?;
    Ok(processor)
}

/// Reads the tile processor and the supported resolutions from the `preprocessor_config.json` of a
/// `LLaVA-NeXT` model.
pub fn read_any_res(file: &Value) -> Result<AnyRes, PublishedError> {
    let (section, _) = processor_section(file, EncoderLayout::Clip)?;
    let mut pinpoints: Vec<[usize; 2]> =
        vec![[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];
    section.read_into("image_grid_pinpoints", &mut pinpoints)?;
    let processor = read_image_processor(file, EncoderLayout::Clip)?;
    AnyRes::new(processor, pinpoints).map_err(|error| {
        let message = error.to_string();
        let first_line = message.lines().next().unwrap_or_default();
        section.field_error("image_grid_pinpoints", format!("is invalid: {first_line}"))
    })
}

/// Reads the limits of the number of tiles from the `preprocessor_config.json` of an `InternVL`
/// model. Its processor always splits images into tiles, whatever `crop_to_patches` is in the file
/// (`processing_internvl.py`), and adds the complete image.
pub fn read_dynamic_tiling(file: &Value) -> Result<Tiling, PublishedError> {
    let (section, _) = processor_section(file, EncoderLayout::InternVl)?;
    let mut tiling = Tiling::INTERN_VL;
    if let Tiling::Dynamic { min_tiles, max_tiles, .. } = &mut tiling {
        section.read_into("min_patches", min_tiles)?;
        section.read_into("max_patches", max_tiles)?;
    }
    Ok(tiling)
}

/// Returns the section with the settings, and the short name of its class: `CLIP` for
/// `CLIPImageProcessorFast`.
fn processor_section(
    file: &Value,
    layout: EncoderLayout,
) -> Result<(JsonSection<'_>, String), PublishedError> {
    let file = JsonSection::root(FILE, file)?;
    let section = file.child("image_processor")?.unwrap_or(file);
    let mut class = section.get::<String>("image_processor_type")?;
    if class.is_none() {
        class = section.get("feature_extractor_type")?;
    }
    let class = class.unwrap_or_else(|| {
        let class = match layout {
            EncoderLayout::Siglip => "SiglipImageProcessor",
            EncoderLayout::Dinov2 => "BitImageProcessor",
            EncoderLayout::InternVl => "GotOcr2ImageProcessor",
            _ => "CLIPImageProcessor",
        };
        class.to_owned()
    });
    let name = class.as_str();
    let name = name.strip_suffix("Fast").unwrap_or(name);
    let name = name.strip_suffix("Pil").unwrap_or(name);
    let short_name = name
        .strip_suffix("ImageProcessor")
        .or_else(|| name.strip_suffix("FeatureExtractor"))
        .unwrap_or(name);
    Ok((section, short_name.to_owned()))
}

/// Returns an error if a size is an object whose keys are not one of the allowed sets.
fn check_size_keys(
    section: &JsonSection<'_>,
    field: &str,
    key_sets: &[&[&str]],
) -> Result<(), PublishedError> {
    let Some(Value::Object(object)) = section.value(field) else {
        return Ok(());
    };
    let non_null = || object.iter().filter(|(_, value)| !value.is_null());
    let matches = |set: &&[&str]| {
        non_null().count() == set.len() && non_null().all(|(key, _)| set.contains(&key.as_str()))
    };
    if key_sets.iter().any(matches) {
        return Ok(());
    }
    let key_sets: Vec<String> = key_sets.iter().map(|set| set.join(" and ")).collect();
    let value = Value::Object(object.clone());
    let problem = format!("is {value}, expected {}", key_sets.join(", or "));
    Err(section.field_error(field, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_file_formats_are_read() {
        let old = json!({"feature_extractor_type": "CLIPFeatureExtractor", "size": 336, "crop_size": 336,
            "do_center_crop": true, "resample": 3, "do_convert_rgb": true, "processor_class": "x"});
        let new = json!({"image_processor": {"image_processor_type": "CLIPImageProcessorFast",
            "size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336},
            "data_format": "channels_first", "do_normalize": null}});
        for file in [old, new] {
            let processor = read_image_processor(&file, EncoderLayout::Siglip).unwrap();
            assert_eq!(processor.output_size(), Some((336, 336)));
            assert!((processor.image_mean[2] - 0.408_210_73).abs() < 1e-12);
        }
        let siglip = json!({"image_processor_type": "SiglipImageProcessor", "resample": 2,
            "size": {"height": 448, "width": 448}});
        let processor = read_image_processor(&siglip, EncoderLayout::Clip).unwrap();
        assert_eq!(processor.output_size(), Some((448, 448)));
        assert_eq!(processor.resample, crate::resample::Resample::Bilinear);
        let onevision = json!({"image_processor_type": "LlavaOnevisionImageProcessor"});
        let processor = read_image_processor(&onevision, EncoderLayout::Siglip).unwrap();
        assert_eq!((processor.output_size(), processor.crop_size), (Some((384, 384)), None));
    }

    #[test]
    fn unsupported_values_are_rejected() {
        for (file, expected) in [
            (json!({"resample": 1}), "`resample` is 1"),
            (json!({"size": {"longest_edge": 3}}), "`size` is {\"longest_edge\":3}"),
            (json!({"size": {"shortest_edge": 3, "longest_edge": 3}}), "`size` is"),
            (json!({"image_mean": [0.5]}), "`image_mean` is [0.5]"),
            (
                json!({"image_processor_type": "ViTImageProcessor"}),
                "`image_processor_type` is \"ViT\"",
            ),
            (
                json!({"image_processor_type": "SiglipImageProcessor", "do_center_crop": true}),
                "`do_center_crop` is true",
            ),
        ] {
            let error = read_image_processor(&file, EncoderLayout::Clip).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let file = json!({"image_grid_pinpoints": [[336, 600]], "crop_size": 336, "size": 336});
        let error = read_any_res(&file).unwrap_err().to_string();
        assert!(error.contains("`image_grid_pinpoints`"), "{error}");
    }
}

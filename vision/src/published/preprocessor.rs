//! `preprocessor_config.json` of `transformers`.

use serde_json::{Value, json};

use super::error::PublishedError;
use super::layout::Layout;
use super::section::Section;
use crate::processor::{AnyRes, CropSize, ImageProcessor, Pad, Size};

const FILE: &str = "preprocessor_config.json";

/// Reads the file. What it leaves out is as in the class it names, or in that of the layout; fields that do
/// not move a pixel are passed over, values that are not known are errors.
pub fn image_processor(file: &Value, layout: Layout) -> Result<ImageProcessor, PublishedError> {
    let (section, class) = open(file, layout)?;
    let clip = ImageProcessor {
        do_center_crop: Some(true),
        crop_size: Some(CropSize::Number(224)),
        ..ImageProcessor::default()
    };
    let mut processor = match class.as_str() {
        "CLIP" | "Bit" | "Llava" | "LlavaNext" => clip,
        "Siglip" => ImageProcessor {
            size: Size::Exact {
                height: 224,
                width: 224,
            },
            do_center_crop: Some(false),
            image_mean: [0.5; 3],
            image_std: [0.5; 3],
            ..ImageProcessor::default()
        },
        other => {
            let what = format!(
                "is \"{other}\", expected an image processor of CLIP, Siglip, Bit, Llava or LlavaNext"
            );
            return Err(section.error("image_processor_type", what));
        }
    };
    let square = section.get::<bool>("do_pad")?.unwrap_or(false);
    if class == "Llava" && square {
        processor.pad = Pad::Square;
    }
    keys(
        &section,
        "size",
        &[&["shortest_edge"], &["height", "width"]],
    )?;
    keys(&section, "crop_size", &[&["height", "width"]])?;
    section.set("do_resize", &mut processor.do_resize)?;
    section.set("size", &mut processor.size)?;
    section.set("resample", &mut processor.resample)?;
    if class == "Siglip" {
        // It has no such step.
        section.only("do_center_crop", &json!(false))?;
    } else {
        section.set("do_center_crop", &mut processor.do_center_crop)?;
        section.set("crop_size", &mut processor.crop_size)?;
    }
    section.set("do_rescale", &mut processor.do_rescale)?;
    section.set("rescale_factor", &mut processor.rescale_factor)?;
    section.set("do_normalize", &mut processor.do_normalize)?;
    section.set("image_mean", &mut processor.image_mean)?;
    section.set("image_std", &mut processor.image_std)?;
    Ok(processor)
}

/// Reads the file of a `LLaVA-NeXT` model: the processor of its tiles, and the resolutions among which an
/// image's is chosen.
pub fn any_res(file: &Value) -> Result<AnyRes, PublishedError> {
    let (section, _) = open(file, Layout::Clip)?;
    let mut pinpoints: Vec<[usize; 2]> =
        vec![[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];
    section.set("image_grid_pinpoints", &mut pinpoints)?;
    let processor = image_processor(file, Layout::Clip)?;
    AnyRes::new(processor, pinpoints).map_err(|error| {
        let what = error.to_string();
        let what = what.lines().next().unwrap_or_default();
        section.error("image_grid_pinpoints", format!("is not usable: {what}"))
    })
}

/// The object with the settings, and the class they are for without the ends of its name.
fn open(file: &Value, layout: Layout) -> Result<(Section<'_>, String), PublishedError> {
    let whole = Section::whole(FILE, file)?;
    let section = whole.inner("image_processor")?.unwrap_or(whole);
    let mut class = section.get::<String>("image_processor_type")?;
    if class.is_none() {
        class = section.get("feature_extractor_type")?;
    }
    let class = class.unwrap_or_else(|| {
        let class = match layout {
            Layout::Siglip => "SiglipImageProcessor",
            Layout::Dinov2 => "BitImageProcessor",
            _ => "CLIPImageProcessor",
        };
        class.to_owned()
    });
    let short = class.as_str();
    let short = short.strip_suffix("Fast").unwrap_or(short);
    let short = short.strip_suffix("Pil").unwrap_or(short);
    let short = short
        .strip_suffix("ImageProcessor")
        .or_else(|| short.strip_suffix("FeatureExtractor"))
        .unwrap_or(short);
    Ok((section, short.to_owned()))
}

/// An error where a size is an object with other keys than one of these sets.
fn keys(section: &Section<'_>, field: &str, sets: &[&[&str]]) -> Result<(), PublishedError> {
    let Some(Value::Object(object)) = section.value(field) else {
        return Ok(());
    };
    let given = || object.iter().filter(|(_, value)| !value.is_null());
    let fits = |set: &&[&str]| {
        given().count() == set.len() && given().all(|(key, _)| set.contains(&key.as_str()))
    };
    if sets.iter().any(fits) {
        return Ok(());
    }
    let sets: Vec<String> = sets.iter().map(|set| set.join(" and ")).collect();
    let value = Value::Object(object.clone());
    let what = format!("is {value}, expected {}", sets.join(", or "));
    Err(section.error(field, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_files_are_read() {
        let old = json!({"feature_extractor_type": "CLIPFeatureExtractor", "size": 336, "crop_size": 336,
            "do_center_crop": true, "resample": 3, "do_convert_rgb": true, "processor_class": "x"});
        let new = json!({"image_processor": {"image_processor_type": "CLIPImageProcessorFast",
            "size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336},
            "data_format": "channels_first", "do_normalize": null}});
        for file in [old, new] {
            let got = image_processor(&file, Layout::Siglip).unwrap();
            assert_eq!(got.output_size(), Some((336, 336)));
            assert!((got.image_mean[2] - 0.408_210_73).abs() < 1e-12);
        }
        let siglip = json!({"image_processor_type": "SiglipImageProcessor", "resample": 2,
            "size": {"height": 448, "width": 448}});
        let got = image_processor(&siglip, Layout::Clip).unwrap();
        assert_eq!(got.output_size(), Some((448, 448)));
        assert_eq!(got.resample, crate::resize::Resample::Bilinear);
    }

    #[test]
    fn unsupported_values_are_rejected() {
        for (file, what) in [
            (json!({"resample": 1}), "`resample` is 1"),
            (
                json!({"size": {"longest_edge": 3}}),
                "`size` is {\"longest_edge\":3}",
            ),
            (
                json!({"size": {"shortest_edge": 3, "longest_edge": 3}}),
                "`size` is",
            ),
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
            let error = image_processor(&file, Layout::Clip)
                .unwrap_err()
                .to_string();
            assert!(error.contains(what), "{error}");
        }
        let file = json!({"image_grid_pinpoints": [[336, 600]], "crop_size": 336, "size": 336});
        let error = any_res(&file).unwrap_err().to_string();
        assert!(error.contains("`image_grid_pinpoints`"), "{error}");
    }
}

//! Configuration of a checkpoint's vision tower, and its image preprocessing.

use std::path::Path;

use acem3_vision::processor::Pad;
use acem3_vision::published::{EncoderNetwork, read_image_processor};
use acem3_vision::{AnyRes, EncoderLayout, ImageProcessor, PublishedEncoder, Tiling};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::config_json::{CONFIG_FILE, read_json};
use super::vision_part::VisionPart;
use crate::checkpoints::published::config_fields::ConfigFields;

/// Files with the image preprocessing, the older format first, with the key of the settings.
const PROCESSOR_FILES: [(&str, Option<&str>); 2] =
    [("preprocessor_config.json", None), ("processor_config.json", Some("image_processor"))];

/// Parses the `vision_config` of a checkpoint.
pub(super) fn from_vision_config(value: Value, ignored: &[String]) -> Result<EncoderNetwork> {
    let network = EncoderNetwork::from_vision_config(&value)?;
    reject_unknown_fields("vision_config.", value, ignored)?;
    check_llava_tower(network)
}

/// Reads the configuration of a separately published tower, alone or part of a larger model.
pub(super) fn read_tower_config(folder: &Path) -> Result<EncoderNetwork> {
    let path = folder.join(CONFIG_FILE);
    let parse_file = || {
        let mut file = Value::Object(read_json(&path)?);
        let network = EncoderNetwork::from_config_file(&file)?;
        let vision_config = file.get_mut("vision_config").map(Value::take);
        let prefix = vision_config.as_ref().map_or("", |_| "vision_config.");
        reject_unknown_fields(prefix, vision_config.unwrap_or(file), &[])?;
        check_llava_tower(network)
    };
    parse_file().with_context(|| path.display().to_string())
}

/// Returns an error if an unread field may affect the computation.
fn reject_unknown_fields(prefix: &str, value: Value, ignored: &[String]) -> Result<()> {
    let Value::Object(mut fields) = value else {
        return Ok(());
    };
    fields.retain(|field, _| !EncoderNetwork::is_known_field(field));
    ConfigFields::new(prefix, fields).finish(ignored)
}

/// Checks that LLaVA's code supports the tower, and removes the norm after its last block, as that
/// code does.
pub(super) fn check_llava_tower(mut network: EncoderNetwork) -> Result<EncoderNetwork> {
    if !matches!(network.layout, EncoderLayout::Clip | EncoderLayout::Siglip) {
        let layout = network.layout;
        bail!(
            "vision tower of type {layout:?} is not supported\n\
             hint: use a checkpoint with a CLIP or SigLIP tower"
        );
    }
    network.config.variant.post_norm = false;
    Ok(network)
}

/// Returns the image preprocessing of the first folder that configures it, otherwise the tower's
/// default.
pub(super) fn read_processor(
    folders: &[&Path],
    network: &EncoderNetwork,
    vision_part: &VisionPart,
) -> Result<ImageProcessor> {
    for folder in folders {
        for (file, settings_key) in PROCESSOR_FILES {
            let path = folder.join(file);
            if !path.is_file() {
                continue;
            }
            let file_name = || path.display().to_string();
            let map = read_json(&path).with_context(file_name)?;
            if settings_key
                .is_none_or(|settings_key| map.get(settings_key).is_some_and(Value::is_object))
            {
                return build_processor(&Value::Object(map), network, vision_part)
                    .with_context(file_name);
            }
        }
    }
    let side = network.config.image_size;
    let square = json!({"height": side, "width": side});
    let file = match network.layout {
        EncoderLayout::Siglip => json!({"size": square}),
        _ => json!({"size": {"shortest_edge": side}, "crop_size": square}),
    };
    build_processor(&file, network, vision_part)
}

fn build_processor(
    file: &Value,
    network: &EncoderNetwork,
    vision_part: &VisionPart,
) -> Result<ImageProcessor> {
    let mut processor = read_image_processor(file, network.layout)?;
    if vision_part.pads_to_square {
        processor.pad = Pad::Square;
    }
    let published =
        PublishedEncoder { layout: network.layout, config: network.config.clone(), processor };
    published.check()?;
    let processor = published.processor;
    let settings = file.get("image_processor").unwrap_or(file);
    match &vision_part.tiling {
        Some(Tiling::Pinpoints(pinpoints)) => {
            check_pinpoints(settings, &processor, pinpoints.clone())?;
        }
        Some(Tiling::AnyResMax(any_res_max)) => {
            let pinpoints = any_res_max.resolutions.in_pixels(network.config.image_size);
            check_pinpoints(settings, &processor, pinpoints)?;
        }
        None => reject_tiling_processor(settings)?,
    }
    Ok(processor)
}

/// Checks that the processor can cut tiles of these resolutions, and that its file has no others.
fn check_pinpoints(
    settings: &Value,
    processor: &ImageProcessor,
    pinpoints: Vec<[usize; 2]>,
) -> Result<()> {
    let file_pinpoints = settings.get("image_grid_pinpoints").filter(|v| !v.is_null());
    if file_pinpoints.is_some_and(|file_pinpoints| *file_pinpoints != json!(pinpoints)) {
        bail!(
            "image_grid_pinpoints differ from those in {CONFIG_FILE}\n\
             hint: check that both files come from the same repository"
        );
    }
    AnyRes::new(processor.clone(), pinpoints)?;
    Ok(())
}

/// Returns an error if a processor cuts tiles, but the checkpoint encodes complete images.
fn reject_tiling_processor(settings: &Value) -> Result<()> {
    let processor_type = settings.get("image_processor_type").and_then(Value::as_str);
    for (class, model_type) in [("LlavaNext", "llava_next"), ("LlavaOnevision", "llava_onevision")]
    {
        if processor_type.is_some_and(|processor_type| processor_type.starts_with(class)) {
            bail!(
                "image_processor_type is for {model_type}, but the checkpoint has another \
                 model_type\n\
                 hint: check that both files come from the same repository"
            );
        }
    }
    Ok(())
}

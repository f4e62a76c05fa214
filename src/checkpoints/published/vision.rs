//! Configuration of a checkpoint's vision tower, and its image preprocessing.

use std::path::Path;

use acem3_vision::processor::{Pad, ResizeSize};
use acem3_vision::published::{
    EncoderNetwork, PublishedError, read_dynamic_tiling, read_image_processor,
};
use acem3_vision::{EncoderLayout, ImageProcessor, InputProcessor, PublishedEncoder, Tiling};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::config_json::{CONFIG_FILE, read_json};
use super::vision_part::VisionPart;
use crate::checkpoints::published::config_fields::{ConfigFields, unsupported};

/// Files with the image preprocessing, the older format first, with the key of the settings.
const PROCESSOR_FILES: [(&str, Option<&str>); 2] =
    [("preprocessor_config.json", None), ("processor_config.json", Some("image_processor"))];

/// Means and standard deviations of red, green and blue in `ImageNet`, which `InternVL`'s own code
/// uses for every checkpoint (`constants.py`).
const IMAGENET: [[f64; 3]; 2] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];

/// Image preprocessing of a checkpoint.
pub(super) struct Preprocessing {
    /// Preprocessing of each encoder input.
    pub processor: ImageProcessor,
    /// Method of tiling, if images are also encoded in tiles.
    pub tiling: Option<Tiling>,
}

/// Parses the `vision_config` of a checkpoint.
pub(super) fn from_vision_config(value: Value, ignored: &[String]) -> Result<EncoderNetwork> {
    let network = EncoderNetwork::from_vision_config(&value).map_err(to_unsupported)?;
    reject_unknown_fields("vision_config.", value, &network, ignored)?;
    check_llava_tower(network)
}

/// Parses the `vision_config` of an `InternVL` in this layout.
pub(super) fn from_intern_vit_config(
    mut value: Value,
    layout: EncoderLayout,
    ignored: &[String],
) -> Result<EncoderNetwork> {
    if let Value::Object(fields) = &mut value {
        let default = match layout {
            EncoderLayout::InternVlChat => "intern_vit_6b",
            _ => "internvl_vision",
        };
        fields.entry("model_type").or_insert_with(|| json!(default));
    }
    let network = EncoderNetwork::from_vision_config(&value).map_err(to_unsupported)?;
    if network.layout != layout {
        bail!(
            "vision_config.model_type is {}, which does not belong to this model_type\n\
             hint: check whether config.json is from this checkpoint",
            value.get("model_type").unwrap_or(&Value::Null)
        );
    }
    reject_unknown_fields("vision_config.", value, &network, ignored)?;
    Ok(network)
}

/// Reads the configuration of a separately published tower, alone or part of a larger model.
pub(super) fn read_tower_config(folder: &Path) -> Result<EncoderNetwork> {
    let path = folder.join(CONFIG_FILE);
    let parse_file = || {
        let mut file = Value::Object(read_json(&path)?);
        let network = EncoderNetwork::from_config_file(&file).map_err(to_unsupported)?;
        let vision_config = file.get_mut("vision_config").map(Value::take);
        let prefix = vision_config.as_ref().map_or("", |_| "vision_config.");
        reject_unknown_fields(prefix, vision_config.unwrap_or(file), &network, &[])?;
        check_llava_tower(network)
    };
    parse_file().with_context(|| path.display().to_string())
}

/// Returns the error of a setting, with an engine that may support it.
fn to_unsupported(error: PublishedError) -> anyhow::Error {
    match error {
        PublishedError::InvalidField { file, field, problem } => unsupported(
            &format!("{file}: `{field}` {problem}"),
            "use a supported architecture with its published settings",
        ),
        other => other.into(),
    }
}

/// Returns an error if an unread field may affect the computation.
fn reject_unknown_fields(
    prefix: &str,
    value: Value,
    network: &EncoderNetwork,
    ignored: &[String],
) -> Result<()> {
    let Value::Object(mut fields) = value else {
        return Ok(());
    };
    fields.retain(|field, _| !network.is_known_field(field));
    ConfigFields::new(prefix, fields).finish(ignored)
}

/// Checks that LLaVA's code supports the tower, and removes the norm after its last block, as that
/// code does.
pub(super) fn check_llava_tower(mut network: EncoderNetwork) -> Result<EncoderNetwork> {
    if !matches!(network.layout, EncoderLayout::Clip | EncoderLayout::Siglip) {
        let layout = network.layout;
        return Err(unsupported(
            &format!("vision tower of type {layout:?} is not supported"),
            "use a checkpoint with a CLIP or SigLIP tower",
        ));
    }
    network.config.variant.post_norm = false;
    Ok(network)
}

/// Returns the image preprocessing of the first folder that configures it, otherwise the tower's
/// default. `InternVL`'s own code has one preprocessing and ignores the file.
pub(super) fn read_processor(
    folders: &[&Path],
    network: &EncoderNetwork,
    vision_part: &VisionPart,
) -> Result<Preprocessing> {
    let side = network.config.image_size;
    if network.layout == EncoderLayout::InternVlChat {
        let processor = ImageProcessor {
            size: ResizeSize::Exact { height: side, width: side },
            do_center_crop: Some(false),
            image_mean: IMAGENET[0],
            image_std: IMAGENET[1],
            ..ImageProcessor::default()
        };
        let config_file = folders.first().map(|folder| folder.join(CONFIG_FILE));
        return check_processor(processor, network, vision_part)
            .with_context(|| config_file.unwrap_or_default().display().to_string());
    }
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
    let square = json!({"height": side, "width": side});
    let file = match network.layout {
        EncoderLayout::Siglip => json!({"size": square}),
        EncoderLayout::InternVl => {
            json!({"size": square, "image_mean": IMAGENET[0], "image_std": IMAGENET[1]})
        }
        _ => json!({"size": {"shortest_edge": side}, "crop_size": square}),
    };
    build_processor(&file, network, vision_part)
}

fn build_processor(
    file: &Value,
    network: &EncoderNetwork,
    vision_part: &VisionPart,
) -> Result<Preprocessing> {
    let processor = read_image_processor(file, network.layout).map_err(to_unsupported)?;
    let mut preprocessing = check_processor(processor, network, vision_part)?;
    let settings = file.get("image_processor").unwrap_or(file);
    match &vision_part.tiling {
        Some(Tiling::Pinpoints(pinpoints)) => {
            check_pinpoints(settings, pinpoints)?;
        }
        Some(Tiling::Dynamic { .. }) => {
            let (tiling, side) =
                (read_dynamic_tiling(file).map_err(to_unsupported)?, network.config.image_size);
            InputProcessor::new(preprocessing.processor.clone(), Some(&tiling), side)?;
            preprocessing.tiling = Some(tiling);
        }
        Some(Tiling::AnyResMax(any_res_max)) => {
            let pinpoints = any_res_max.resolutions.in_pixels(network.config.image_size);
            check_pinpoints(settings, &pinpoints)?;
        }
        None => reject_tiling_processor(settings)?,
    }
    Ok(preprocessing)
}

/// Checks that the network supports the output of the processor, and that the processor supports the
/// method of tiling.
fn check_processor(
    mut processor: ImageProcessor,
    network: &EncoderNetwork,
    vision_part: &VisionPart,
) -> Result<Preprocessing> {
    if vision_part.pads_to_square {
        processor.pad = Pad::Square;
    }
    let published =
        PublishedEncoder { layout: network.layout, config: network.config.clone(), processor };
    published.check()?;
    let (processor, tiling) = (published.processor, vision_part.tiling.clone());
    InputProcessor::new(processor.clone(), tiling.as_ref(), network.config.image_size)?;
    Ok(Preprocessing { processor, tiling })
}

/// Checks that the settings of the processor have no other resolutions than these.
fn check_pinpoints(settings: &Value, pinpoints: &[[usize; 2]]) -> Result<()> {
    let file_pinpoints = settings.get("image_grid_pinpoints").filter(|v| !v.is_null());
    if file_pinpoints.is_some_and(|file_pinpoints| *file_pinpoints != json!(pinpoints)) {
        bail!(
            "image_grid_pinpoints differ from those in {CONFIG_FILE}\n\
             hint: check that both files come from the same repository"
        );
    }
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

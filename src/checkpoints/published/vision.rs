//! Configuration of a checkpoint's vision tower, and its image preprocessing.

use std::path::Path;

use acem3_vision::processor::Pad;
use acem3_vision::published::{Network, image_processor};
use acem3_vision::{AnyRes, ImageProcessor, Layout, Published};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::config_json::{CONFIG_FILE, json as read};
use super::vision_part::VisionPart;
use crate::checkpoints::published::config_fields::ConfigFields;

/// Files with the image preprocessing, the older format first, with the key of the settings.
const PROCESSORS: [(&str, Option<&str>); 2] = [
    ("preprocessor_config.json", None),
    ("processor_config.json", Some("image_processor")),
];

/// Parses the `vision_config` of a checkpoint.
pub(super) fn part(value: Value, ignored: &[String]) -> Result<Network> {
    let network = Network::of_part(&value)?;
    nothing_else("vision_config.", value, ignored)?;
    allowed(network)
}

/// Reads the configuration of a separately published tower, alone or part of a larger model.
pub(super) fn of_folder(folder: &Path) -> Result<Network> {
    let path = folder.join(CONFIG_FILE);
    let find = || {
        let mut file = Value::Object(read(&path)?);
        let network = Network::of_file(&file)?;
        let part = file.get_mut("vision_config").map(Value::take);
        let place = part.as_ref().map_or("", |_| "vision_config.");
        nothing_else(place, part.unwrap_or(file), &[])?;
        allowed(network)
    };
    find().with_context(|| path.display().to_string())
}

/// Returns an error if an unread field may affect the computation.
fn nothing_else(place: &str, value: Value, ignored: &[String]) -> Result<()> {
    let Value::Object(mut left) = value else {
        return Ok(());
    };
    left.retain(|field, _| !Network::reads(field));
    ConfigFields::new(place, left).finish(ignored)
}

/// Checks that LLaVA's code supports the tower, and removes the norm after its last block, as that code
/// does.
pub(super) fn allowed(mut network: Network) -> Result<Network> {
    if !matches!(network.layout, Layout::Clip | Layout::Siglip) {
        let layout = network.layout;
        bail!(
            "vision tower of type {layout:?} is not supported\nhint: use a checkpoint with a CLIP or SigLIP tower"
        );
    }
    network.config.form.post_norm = false;
    Ok(network)
}

/// Returns the image preprocessing of the first folder that configures it, otherwise the tower's
/// default.
pub(super) fn processor(
    folders: &[&Path],
    network: &Network,
    eyes: &VisionPart,
) -> Result<ImageProcessor> {
    for folder in folders {
        for (file, part) in PROCESSORS {
            let path = folder.join(file);
            if !path.is_file() {
                continue;
            }
            let at = || path.display().to_string();
            let map = read(&path).with_context(at)?;
            if part.is_none_or(|part| map.get(part).is_some_and(Value::is_object)) {
                return of_file(&Value::Object(map), network, eyes).with_context(at);
            }
        }
    }
    let side = network.config.image_size;
    let square = json!({"height": side, "width": side});
    let file = match network.layout {
        Layout::Siglip => json!({"size": square}),
        _ => json!({"size": {"shortest_edge": side}, "crop_size": square}),
    };
    of_file(&file, network, eyes)
}

fn of_file(file: &Value, network: &Network, eyes: &VisionPart) -> Result<ImageProcessor> {
    let mut processor = image_processor(file, network.layout)?;
    if eyes.pad {
        processor.pad = Pad::Square;
    }
    let published = Published {
        layout: network.layout,
        config: network.config.clone(),
        processor,
    };
    published.check()?;
    let processor = published.processor;
    let inner = file.get("image_processor").unwrap_or(file);
    let class = inner.get("image_processor_type").and_then(Value::as_str);
    match &eyes.pinpoints {
        Some(pinpoints) => {
            let said = inner.get("image_grid_pinpoints").filter(|v| !v.is_null());
            if said.is_some_and(|said| *said != json!(pinpoints)) {
                bail!(
                    "image_grid_pinpoints differ from those in {CONFIG_FILE}\n\
                     hint: check that both files come from the same repository"
                );
            }
            AnyRes::new(processor.clone(), pinpoints.clone())?;
        }
        None if class.is_some_and(|class| class.starts_with("LlavaNext")) => bail!(
            "image_processor_type is for llava_next, but the checkpoint has another model_type\n\
             hint: check that both files come from the same repository"
        ),
        None => {}
    }
    Ok(processor)
}

//! What a checkpoint says of its vision tower, and how its images are prepared.

use std::path::Path;

use acem3_vision::processor::Pad;
use acem3_vision::published::{Network, image_processor};
use acem3_vision::{AnyRes, ImageProcessor, Layout, Published};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::config_json::{CONFIG_FILE, json as read};
use super::vision_part::VisionPart;
use crate::checkpoints::published::config_fields::ConfigFields;

/// The files that say how images are prepared, the older first.
const PROCESSORS: [(&str, Option<&str>); 2] = [
    ("preprocessor_config.json", None),
    ("processor_config.json", Some("image_processor")),
];

/// The tower in the `vision_config` of a checkpoint.
pub(super) fn part(value: Value, ignored: &[String]) -> Result<Network> {
    let network = Network::of_part(&value)?;
    nothing_else("vision_config.", value, ignored)?;
    allowed(network)
}

/// The tower that is published in a folder of its own, alone or as the half of a model.
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

/// A field that is not read might change what is computed.
fn nothing_else(place: &str, value: Value, ignored: &[String]) -> Result<()> {
    let Value::Object(mut left) = value else {
        return Ok(());
    };
    left.retain(|field, _| !Network::reads(field));
    ConfigFields::new(place, left).finish(ignored)
}

/// A tower that LLaVA's code looks through, as it looks: no norm follows its last block.
pub(super) fn allowed(mut network: Network) -> Result<Network> {
    if !matches!(network.layout, Layout::Clip | Layout::Siglip) {
        let layout = network.layout;
        bail!("a vision tower of kind {layout:?}\nhint: LLaVA looks through a CLIP or a SigLIP");
    }
    network.config.form.post_norm = false;
    Ok(network)
}

/// How images are prepared, by the first of the folders that says it; as the tower's own processor
/// does where none says it.
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
                    "image_grid_pinpoints are not those of {CONFIG_FILE}\n\
                     hint: check that both files come from the same repository"
                );
            }
            AnyRes::new(processor.clone(), pinpoints.clone())?;
        }
        None if class.is_some_and(|class| class.starts_with("LlavaNext")) => bail!(
            "image_processor_type is that of llava_next, the checkpoint is none\n\
             hint: check that both files come from the same repository"
        ),
        None => {}
    }
    Ok(processor)
}

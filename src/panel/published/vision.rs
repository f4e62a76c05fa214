//! A vision tower's part of a configuration, and how its images are prepared.

use std::path::Path;

use acem3_vision::{ImageProcessor, VisionConfig};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::json as read;

/// The files that say how images are prepared, the older first.
const PROCESSORS: [(&str, Option<&str>); 2] = [
    ("preprocessor_config.json", None),
    ("processor_config.json", Some("image_processor")),
];

/// The tower that the fields describe, with the defaults of transformers' `CLIPVisionConfig`.
pub(super) fn tower(fields: &mut Fields) -> Result<VisionConfig> {
    let kind: String = fields.or("model_type", "clip_vision_model".to_owned())?;
    if kind != "clip_vision_model" {
        bail!(
            "model_type is `{kind}`, which is not supported as a vision tower\n\
             hint: clip_vision_model is"
        );
    }
    let map = Map::from_iter(
        [
            ("hidden_size", fields.or("hidden_size", 768)?.into()),
            (
                "intermediate_size",
                fields.or("intermediate_size", 3072)?.into(),
            ),
            (
                "num_hidden_layers",
                fields.or("num_hidden_layers", 12)?.into(),
            ),
            (
                "num_attention_heads",
                fields.or("num_attention_heads", 12)?.into(),
            ),
            ("image_size", fields.or("image_size", 224)?.into()),
            ("patch_size", fields.or("patch_size", 32)?.into()),
            ("num_channels", fields.or("num_channels", 3)?.into()),
            ("layer_norm_eps", fields.or("layer_norm_eps", 1e-5)?.into()),
            (
                "hidden_act",
                fields.or("hidden_act", "quick_gelu".to_owned())?.into(),
            ),
        ]
        .map(|(name, value): (&str, Value)| (name.to_owned(), value)),
    );
    // Only the pooled text-to-image score uses it, which no judge does.
    fields.take::<usize>("vocab_size")?;
    let config: VisionConfig = serde_json::from_value(Value::Object(map))?;
    config.validate()?;
    let sizes = [
        config.hidden_size,
        config.intermediate_size,
        config.num_channels,
    ];
    let (side, layers) = (config.image_size, config.num_hidden_layers);
    if side > 8192 || layers > 4096 || sizes.iter().any(|size| *size > 1 << 24) {
        bail!("image_size {side}, num_hidden_layers {layers} or a width {sizes:?} is too large");
    }
    Ok(config)
}

/// The towers that LLaVA checkpoints name most, for those that bring their weights.
pub(super) fn known(name: &str) -> Option<VisionConfig> {
    let image_size = match name.rsplit('/').next()? {
        "clip-vit-large-patch14" => 224,
        "clip-vit-large-patch14-336" => 336,
        _ => return None,
    };
    serde_json::from_value(json!({
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "image_size": image_size, "patch_size": 14,
    }))
    .ok()
}

/// How images are prepared, by the first of the folders that says it; as for CLIP where none does.
/// `pad`: whether oblong images are made square first, whatever a folder says.
pub(super) fn processor(
    folders: &[&Path],
    config: &VisionConfig,
    pad: bool,
) -> Result<ImageProcessor> {
    for folder in folders {
        for (file, part) in PROCESSORS {
            let path = folder.join(file);
            if !path.is_file() {
                continue;
            }
            let map = read(&path).with_context(|| path.display().to_string())?;
            let map = match part.map(|part| map.get(part)) {
                None => map,
                Some(Some(Value::Object(part))) => part.clone(),
                Some(_) => continue,
            };
            return of_file(map, pad).with_context(|| path.display().to_string());
        }
    }
    let side = config.image_size;
    let map = json!({"size": {"shortest_edge": side}, "crop_size": side});
    of_file(map.as_object().cloned().unwrap_or_default(), pad)
}

fn of_file(mut map: Map<String, Value>, pad: bool) -> Result<ImageProcessor> {
    let kind = map.get("image_processor_type").and_then(Value::as_str);
    if let Some(kind) = kind.filter(|kind| !kind.starts_with("CLIP") && !kind.starts_with("Llava"))
    {
        bail!(
            "image_processor_type is `{kind}`, which is not supported\n\
             hint: those of CLIP and LLaVA are"
        );
    }
    if kind.is_some_and(|kind| kind.starts_with("LlavaNext")) {
        bail!("image_processor_type is that of llava_next, whose tiles are not supported yet");
    }
    let pad = pad || map.remove("do_pad") == Some(Value::Bool(true));
    // A field that is null is as one that is absent, and `pad` is ours alone.
    map.retain(|name, value| !value.is_null() && name != "pad");
    if pad {
        map.insert("pad".to_owned(), "square".into());
    }
    Ok(serde_json::from_value(Value::Object(map))?)
}

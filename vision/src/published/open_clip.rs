//! `open_clip_config.json`: vision transformers of `open_clip` and of `timm`.

use acem3_kernels::Activation;
use serde_json::{Value, json};

use super::encoder::PublishedEncoder;
use super::error::PublishedError;
use super::json_section::JsonSection;
use super::layout::EncoderLayout;
use crate::config::{VisionConfig, VitVariant};
use crate::processor::{CropRounding, CropSize, ImageProcessor, ResizeSize};
use crate::resample::Resample;

const FILE: &str = "open_clip_config.json";

/// Fields of `CLIPVisionCfg` that do not affect patch features in inference.
const IGNORED_FIELDS: [&str; 9] = [
    "timm_model_pretrained",
    "timm_proj_bias",
    "timm_drop",
    "timm_drop_path",
    "patch_dropout",
    "attn_pooler_queries",
    "attn_pooler_heads",
    "output_tokens",
    "global_average_pool",
];

/// Fields of `CLIPVisionCfg` that this module reads.
const KNOWN_FIELDS: [&str; 15] = [
    "timm_model_name",
    "timm_pool",
    "timm_proj",
    "image_size",
    "layers",
    "width",
    "head_width",
    "mlp_ratio",
    "patch_size",
    "ls_init_value",
    "no_ln_pre",
    "norm_kwargs",
    "act_kwargs",
    "pos_embed_type",
    "pool_type",
];

/// Reads a parsed `open_clip_config.json`.
pub(super) fn read_encoder(config: &Value) -> Result<PublishedEncoder, PublishedError> {
    let file = JsonSection::root(FILE, config)?;
    let Some(model) = file.child("model_cfg")? else {
        return Err(file.field_error("model_cfg", "is missing"));
    };
    let Some(vision) = model.child("vision_cfg")? else {
        return Err(model.field_error("vision_cfg", "is missing"));
    };
    // Any other setting changes the network, unless it is false or null.
    let other_fields = vision
        .field_names()
        .filter(|name| !IGNORED_FIELDS.contains(name) && !KNOWN_FIELDS.contains(name));
    for name in other_fields {
        let is_off = vision.value(name).is_none_or(|value| *value == json!(false));
        if !is_off {
            return Err(vision.field_error(name, "is set, expected no such field"));
        }
    }
    let (layout, config) = if let Some(name) = vision.get::<String>("timm_model_name")? {
        (EncoderLayout::OpenClipTimm, timm_config(&vision, &name)?)
    } else {
        let is_quick_gelu = model.get::<bool>("quick_gelu")?.unwrap_or(false);
        let config = open_clip_config(&vision, is_quick_gelu)?;
        (EncoderLayout::OpenClip, config)
    };
    let preprocess = file.child("preprocess_cfg")?;
    let processor = inference_processor(preprocess.as_ref(), config.image_size)?;
    Ok(PublishedEncoder { layout, config, processor })
}

/// Returns the configuration of a plain vision transformer of `timm` from its name, for example
/// `vit_base_patch16_224`.
fn timm_config(vision: &JsonSection<'_>, name: &str) -> Result<VisionConfig, PublishedError> {
    let unknown_model = || {
        let problem = format!(
            "is \"{name}\", expected `vit_SIZE_patchN_SIDE` with tiny, small, base, large or huge"
        );
        vision.field_error("timm_model_name", problem)
    };
    let architecture = name.split_once('.').map_or(name, |(architecture, _)| architecture);
    let parts: Vec<&str> = architecture.split('_').collect();
    let ["vit", size, patch, side] = parts.as_slice() else {
        return Err(unknown_model());
    };
    let (hidden_size, layers, heads) = match *size {
        "tiny" => (192, 12, 3),
        "small" => (384, 12, 6),
        "base" => (768, 12, 12),
        "large" => (1024, 24, 16),
        "huge" => (1280, 32, 16),
        _ => return Err(unknown_model()),
    };
    let number = |text: &str| text.parse::<usize>().map_err(|_| unknown_model());
    let patch_size = number(patch.strip_prefix("patch").ok_or_else(unknown_model)?)?;
    let image_size = number(side)?;
    let mut configured_size = image_size;
    vision.read_side("image_size", &mut configured_size)?;
    if configured_size != image_size {
        let problem = format!("is {configured_size}, expected {image_size} as in \"{name}\"");
        return Err(vision.field_error("image_size", problem));
    }
    let pool = vision.get::<String>("timm_pool")?.unwrap_or("avg".into());
    let proj = vision.get::<String>("timm_proj")?.unwrap_or("linear".into());
    if !matches!(pool.as_str(), "" | "token" | "avg") {
        let problem = format!("is \"{pool}\", expected \"\", \"token\" or \"avg\"");
        return Err(vision.field_error("timm_pool", problem));
    }
    // Without a projection, `open_clip` keeps the average pooling in the `timm` model, which then
    // applies its final norm after the pooling.
    if pool == "avg" && !matches!(proj.as_str(), "linear" | "mlp") {
        let problem =
            format!("is \"{proj}\", expected \"linear\" or \"mlp\" with the pool \"avg\"");
        return Err(vision.field_error("timm_proj", problem));
    }
    Ok(VisionConfig {
        hidden_size,
        intermediate_size: 4 * hidden_size,
        num_hidden_layers: layers,
        num_attention_heads: heads,
        image_size,
        patch_size,
        num_channels: 3,
        layer_norm_eps: 1e-6,
        hidden_act: Activation::Gelu,
        variant: VitVariant::timm(),
    })
}

/// Returns the configuration of a vision transformer of `open_clip`, with the defaults of
/// `CLIPVisionCfg`.
fn open_clip_config(
    vision: &JsonSection<'_>,
    is_quick_gelu: bool,
) -> Result<VisionConfig, PublishedError> {
    let (mut hidden_size, mut head_size, mut mlp_ratio) = (768usize, 64usize, 4f64);
    let (mut layers, mut patch_size, mut image_size) = (12, 16, 224);
    if let Some(Value::Array(_)) = vision.value("layers") {
        return Err(vision.field_error("layers", "is a list, expected a number of blocks"));
    }
    vision.read_into("layers", &mut layers)?;
    vision.read_into("width", &mut hidden_size)?;
    vision.read_into("head_width", &mut head_size)?;
    vision.read_into("mlp_ratio", &mut mlp_ratio)?;
    vision.read_side("patch_size", &mut patch_size)?;
    vision.read_side("image_size", &mut image_size)?;
    vision.expect_value("pos_embed_type", &json!("learnable"))?;
    vision.expect_value("pool_type", &json!("tok"))?;
    let mut layer_norm_eps = 1e-5;
    if let Some(norm) = vision.child("norm_kwargs")? {
        norm.read_into("eps", &mut layer_norm_eps)?;
    }
    let mut hidden_act = if is_quick_gelu { Activation::QuickGelu } else { Activation::Gelu };
    if let Some(act) = vision.child("act_kwargs")?
        && act.value("approximate").is_some()
    {
        act.expect_value("approximate", &json!("tanh"))?;
        hidden_act = Activation::GeluPytorchTanh;
    }
    if !(mlp_ratio > 0. && mlp_ratio <= 1e3) {
        return Err(vision.field_error(
            "mlp_ratio",
            format!("is {mlp_ratio}, expected a positive number up to 1000"),
        ));
    }
    let Some(num_attention_heads) = hidden_size.checked_div(head_size) else {
        return Err(vision.field_error("head_width", "is 0, expected a positive number"));
    };
    let pre_norm = !vision.get::<bool>("no_ln_pre")?.unwrap_or(false);
    let variant = VitVariant {
        pre_norm,
        fused_qkv: true,
        layer_scale: vision.value("ls_init_value").is_some(),
        ..VitVariant::clip()
    };
    Ok(VisionConfig {
        hidden_size,
        intermediate_size: (hidden_size as f64 * mlp_ratio) as usize,
        num_hidden_layers: layers,
        num_attention_heads,
        image_size,
        patch_size,
        num_channels: 3,
        layer_norm_eps,
        hidden_act,
        variant,
    })
}

/// Returns the inference transform (`image_transform` in `transform.py`) for the input side of the
/// network.
fn inference_processor(
    preprocess: Option<&JsonSection<'_>>,
    side: usize,
) -> Result<ImageProcessor, PublishedError> {
    let square = ResizeSize::Exact { height: side, width: side };
    let mut processor = ImageProcessor {
        size: ResizeSize::ShortestEdge { shortest_edge: side },
        do_center_crop: Some(true),
        crop_size: Some(CropSize::Number(side)),
        crop_rounding: CropRounding::HalfToEven,
        ..ImageProcessor::default()
    };
    let Some(preprocess) = preprocess else {
        return Ok(processor);
    };
    let mut configured_side = side;
    preprocess.read_side("size", &mut configured_side)?;
    if configured_side != side {
        let problem = format!(
            "is {configured_side}, expected {side} as in `model_cfg.vision_cfg.image_size`"
        );
        return Err(preprocess.field_error("size", problem));
    }
    preprocess.expect_value("mode", &json!("RGB"))?;
    preprocess.read_into("mean", &mut processor.image_mean)?;
    preprocess.read_into("std", &mut processor.image_std)?;
    let filter = preprocess.get::<String>("interpolation")?;
    processor.resample = match filter.as_deref() {
        // In inference, `random` is bicubic.
        None | Some("bicubic" | "random") => Resample::Bicubic,
        Some("bilinear") => Resample::Bilinear,
        Some(other) => {
            let problem = format!("is \"{other}\", expected \"bicubic\" or \"bilinear\"");
            return Err(preprocess.field_error("interpolation", problem));
        }
    };
    match preprocess.get::<String>("resize_mode")?.as_deref() {
        None | Some("shortest") => {}
        Some("squash") => {
            processor.size = square;
            processor.do_center_crop = Some(false);
        }
        Some(other) => {
            let problem = format!("is \"{other}\", expected \"shortest\" or \"squash\"");
            return Err(preprocess.field_error("resize_mode", problem));
        }
    }
    Ok(processor)
}

#[cfg(test)]
mod tests {
    use super::super::EncoderFiles;
    use super::*;

    fn encoder(config: &Value) -> Result<PublishedEncoder, PublishedError> {
        PublishedEncoder::from_files(&EncoderFiles {
            open_clip_config: Some(config),
            ..EncoderFiles::default()
        })
    }

    #[test]
    fn biomedclip_is_a_timm_base_model() {
        let json = json!({"model_cfg": {"embed_dim": 512, "vision_cfg": {
            "timm_model_name": "vit_base_patch16_224", "timm_model_pretrained": false,
            "timm_pool": "", "timm_proj": "linear", "image_size": 224}, "text_cfg": {}},
            "preprocess_cfg": {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.2, 0.2]}});
        let published = encoder(&json).unwrap();
        assert_eq!(published.layout, EncoderLayout::OpenClipTimm);
        assert_eq!((published.config.hidden_size, published.config.sequence_length()), (768, 197));
        assert_eq!(published.processor.output_size(), Some((224, 224)));
        assert!((published.processor.image_mean[1] - 0.4).abs() < 1e-9);
    }

    #[test]
    fn unsupported_settings_are_rejected() {
        let encoder_with = |field: &str, value: Value| {
            let mut json = json!({"model_cfg": {"vision_cfg": {"layers": 2, "width": 128}}});
            json["model_cfg"]["vision_cfg"][field] = value;
            encoder(&json)
        };
        assert!(encoder_with("qk_norm", json!(false)).is_ok());
        assert!(encoder_with("patch_dropout", json!(0.5)).is_ok());
        for (field, value) in [
            ("qk_norm", json!(true)),
            ("attentional_pool", json!("parallel")),
            ("layers", json!([3, 4, 6, 3])),
            ("timm_model_name", json!("vit_base_patch16_siglip_224")),
            ("timm_model_name", json!("convnext_base")),
            ("pos_embed_type", json!("sin_cos_2d")),
            ("head_width", json!(0)),
        ] {
            let error = encoder_with(field, value).unwrap_err().to_string();
            assert!(error.contains(&format!("`model_cfg.vision_cfg.{field}`")), "{error}");
        }
    }
}

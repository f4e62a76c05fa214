//! `open_clip_config.json`: `open_clip`'s own vision transformer and those it takes from `timm`.

use acem3_kernels::Activation;
use serde_json::{Value, json};

use super::encoder::Published;
use super::error::PublishedError;
use super::layout::Layout;
use super::section::Section;
use crate::config::{Form, VisionConfig};
use crate::processor::{Centre, CropSize, ImageProcessor, Size};
use crate::resize::Resample;

const FILE: &str = "open_clip_config.json";

/// Settings of `CLIPVisionCfg` that change nothing of a patch feature in inference.
const IRRELEVANT: [&str; 9] = [
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

/// Those that are read here.
const READ: [&str; 15] = [
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

/// Reads the file.
pub(super) fn open(config: &Value) -> Result<Published, PublishedError> {
    let whole = Section::whole(FILE, config)?;
    let Some(model) = whole.inner("model_cfg")? else {
        return Err(whole.error("model_cfg", "is missing"));
    };
    let Some(vision) = model.inner("vision_cfg")? else {
        return Err(model.error("vision_cfg", "is missing"));
    };
    // Whatever else is switched on makes another network.
    let others = vision
        .names()
        .filter(|name| !IRRELEVANT.contains(name) && !READ.contains(name));
    for name in others {
        let off = vision
            .value(name)
            .is_none_or(|value| *value == json!(false));
        if !off {
            return Err(vision.error(name, "is set, expected it to be left out"));
        }
    }
    let (layout, config) = if let Some(name) = vision.get::<String>("timm_model_name")? {
        (Layout::OpenClipTimm, timm(&vision, &name)?)
    } else {
        let quick = model.get::<bool>("quick_gelu")?.unwrap_or(false);
        (Layout::OpenClip, own(&vision, quick)?)
    };
    let preprocess = whole.inner("preprocess_cfg")?;
    let processor = processor(preprocess.as_ref(), config.image_size)?;
    Ok(Published {
        layout,
        config,
        processor,
    })
}

/// A plain vision transformer of `timm`, whose name is its sizes: `vit_base_patch16_224`.
fn timm(vision: &Section<'_>, name: &str) -> Result<VisionConfig, PublishedError> {
    let unknown = || {
        let what = format!(
            "is \"{name}\", expected `vit_SIZE_patchN_SIDE` with tiny, small, base, large or huge"
        );
        vision.error("timm_model_name", what)
    };
    let plain = name.split_once('.').map_or(name, |(plain, _)| plain);
    let parts: Vec<&str> = plain.split('_').collect();
    let ["vit", size, patch, side] = parts.as_slice() else {
        return Err(unknown());
    };
    let (hidden_size, layers, heads) = match *size {
        "tiny" => (192, 12, 3),
        "small" => (384, 12, 6),
        "base" => (768, 12, 12),
        "large" => (1024, 24, 16),
        "huge" => (1280, 32, 16),
        _ => return Err(unknown()),
    };
    let number = |text: &str| text.parse::<usize>().map_err(|_| unknown());
    let patch_size = number(patch.strip_prefix("patch").ok_or_else(unknown)?)?;
    let image_size = number(side)?;
    let mut stated = image_size;
    vision.side("image_size", &mut stated)?;
    if stated != image_size {
        let what = format!("is {stated}, expected {image_size} as in \"{name}\"");
        return Err(vision.error("image_size", what));
    }
    let pool = vision.get::<String>("timm_pool")?.unwrap_or("avg".into());
    let proj = vision
        .get::<String>("timm_proj")?
        .unwrap_or("linear".into());
    if !matches!(pool.as_str(), "" | "token" | "avg") {
        let what = format!("is \"{pool}\", expected \"\", \"token\" or \"avg\"");
        return Err(vision.error("timm_pool", what));
    }
    // Without a projection of its own the trunk is built with the pool, whose norm then lies after it.
    if pool == "avg" && !matches!(proj.as_str(), "linear" | "mlp") {
        let what = format!("is \"{proj}\", expected \"linear\" or \"mlp\" with the pool \"avg\"");
        return Err(vision.error("timm_proj", what));
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
        form: Form::timm(),
    })
}

/// `open_clip`'s own, with the defaults of `CLIPVisionCfg`.
fn own(vision: &Section<'_>, quick: bool) -> Result<VisionConfig, PublishedError> {
    let (mut hidden_size, mut head, mut ratio) = (768usize, 64usize, 4f64);
    let (mut layers, mut patch_size, mut image_size) = (12, 16, 224);
    if let Some(Value::Array(_)) = vision.value("layers") {
        return Err(vision.error(
            "layers",
            "is a list, expected the number of a transformer's blocks",
        ));
    }
    vision.set("layers", &mut layers)?;
    vision.set("width", &mut hidden_size)?;
    vision.set("head_width", &mut head)?;
    vision.set("mlp_ratio", &mut ratio)?;
    vision.side("patch_size", &mut patch_size)?;
    vision.side("image_size", &mut image_size)?;
    vision.only("pos_embed_type", &json!("learnable"))?;
    vision.only("pool_type", &json!("tok"))?;
    let mut layer_norm_eps = 1e-5;
    if let Some(norm) = vision.inner("norm_kwargs")? {
        norm.set("eps", &mut layer_norm_eps)?;
    }
    let mut hidden_act = if quick {
        Activation::QuickGelu
    } else {
        Activation::Gelu
    };
    if let Some(act) = vision.inner("act_kwargs")?
        && act.value("approximate").is_some()
    {
        act.only("approximate", &json!("tanh"))?;
        hidden_act = Activation::GeluPytorchTanh;
    }
    if !(ratio > 0. && ratio <= 1e3) {
        return Err(vision.error(
            "mlp_ratio",
            format!("is {ratio}, expected a positive number"),
        ));
    }
    let Some(num_attention_heads) = hidden_size.checked_div(head) else {
        return Err(vision.error("head_width", "is 0, expected a positive number"));
    };
    let pre_norm = !vision.get::<bool>("no_ln_pre")?.unwrap_or(false);
    let form = Form {
        pre_norm,
        fused_qkv: true,
        layer_scale: vision.value("ls_init_value").is_some(),
        ..Form::clip()
    };
    Ok(VisionConfig {
        hidden_size,
        intermediate_size: (hidden_size as f64 * ratio) as usize,
        num_hidden_layers: layers,
        num_attention_heads,
        image_size,
        patch_size,
        num_channels: 3,
        layer_norm_eps,
        hidden_act,
        form,
    })
}

/// The transform of inference (`image_transform` in `transform.py`), at the network's size.
fn processor(
    preprocess: Option<&Section<'_>>,
    side: usize,
) -> Result<ImageProcessor, PublishedError> {
    let square = Size::Exact {
        height: side,
        width: side,
    };
    let mut processor = ImageProcessor {
        size: Size::ShortestEdge {
            shortest_edge: side,
        },
        do_center_crop: Some(true),
        crop_size: Some(CropSize::Number(side)),
        centre: Centre::HalfToEven,
        ..ImageProcessor::default()
    };
    let Some(preprocess) = preprocess else {
        return Ok(processor);
    };
    let mut stated = side;
    preprocess.side("size", &mut stated)?;
    if stated != side {
        let what = format!("is {stated}, expected {side} as in `model_cfg.vision_cfg.image_size`");
        return Err(preprocess.error("size", what));
    }
    preprocess.only("mode", &json!("RGB"))?;
    preprocess.set("mean", &mut processor.image_mean)?;
    preprocess.set("std", &mut processor.image_std)?;
    let filter = preprocess.get::<String>("interpolation")?;
    processor.resample = match filter.as_deref() {
        // At inference `random` is bicubic.
        None | Some("bicubic" | "random") => Resample::Bicubic,
        Some("bilinear") => Resample::Bilinear,
        Some(other) => {
            let what = format!("is \"{other}\", expected \"bicubic\" or \"bilinear\"");
            return Err(preprocess.error("interpolation", what));
        }
    };
    match preprocess.get::<String>("resize_mode")?.as_deref() {
        None | Some("shortest") => {}
        Some("squash") => {
            processor.size = square;
            processor.do_center_crop = Some(false);
        }
        Some(other) => {
            let what = format!("is \"{other}\", expected \"shortest\" or \"squash\"");
            return Err(preprocess.error("resize_mode", what));
        }
    }
    Ok(processor)
}

#[cfg(test)]
mod tests {
    use super::super::Files;
    use super::*;

    fn opened(config: &Value) -> Result<Published, PublishedError> {
        Published::open(&Files {
            open_clip_config: Some(config),
            ..Files::default()
        })
    }

    #[test]
    fn biomedclip_is_a_base_of_timm() {
        let json = json!({"model_cfg": {"embed_dim": 512, "vision_cfg": {
            "timm_model_name": "vit_base_patch16_224", "timm_model_pretrained": false,
            "timm_pool": "", "timm_proj": "linear", "image_size": 224}, "text_cfg": {}},
            "preprocess_cfg": {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.2, 0.2]}});
        let got = opened(&json).unwrap();
        assert_eq!(got.layout, Layout::OpenClipTimm);
        assert_eq!((got.config.hidden_size, got.config.sequence()), (768, 197));
        assert_eq!(got.processor.output_size(), Some((224, 224)));
        assert!((got.processor.image_mean[1] - 0.4).abs() < 1e-9);
    }

    #[test]
    fn unsupported_settings_are_rejected() {
        let with = |field: &str, value: Value| {
            let mut json = json!({"model_cfg": {"vision_cfg": {"layers": 2, "width": 128}}});
            json["model_cfg"]["vision_cfg"][field] = value;
            opened(&json)
        };
        assert!(with("qk_norm", json!(false)).is_ok());
        assert!(with("patch_dropout", json!(0.5)).is_ok());
        for (field, value) in [
            ("qk_norm", json!(true)),
            ("attentional_pool", json!("parallel")),
            ("layers", json!([3, 4, 6, 3])),
            ("timm_model_name", json!("vit_base_patch16_siglip_224")),
            ("timm_model_name", json!("convnext_base")),
            ("pos_embed_type", json!("sin_cos_2d")),
            ("head_width", json!(0)),
        ] {
            let error = with(field, value).unwrap_err().to_string();
            assert!(
                error.contains(&format!("`model_cfg.vision_cfg.{field}`")),
                "{error}"
            );
        }
    }
}

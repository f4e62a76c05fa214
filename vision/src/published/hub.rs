//! `config.json` of `transformers`: CLIP, `SigLIP` and `DINOv2`.

use acem3_kernels::Activation;
use serde_json::{Value, json};

use super::encoder::Published;
use super::error::PublishedError;
use super::layout::Layout;
use super::preprocessor;
use super::section::Section;
use crate::config::{Form, VisionConfig};

const FILE: &str = "config.json";

/// The `model_type`s that are read. A model of images and text holds its vision part in `vision_config`.
const MODELS: [(&str, Layout); 6] = [
    ("clip", Layout::Clip),
    ("clip_vision_model", Layout::Clip),
    ("siglip", Layout::Siglip),
    ("siglip_vision_model", Layout::Siglip),
    ("dinov2", Layout::Dinov2),
    ("dinov2_backbone", Layout::Dinov2),
];

fn layout(model: &str) -> Option<Layout> {
    let found = MODELS.iter().find(|(name, _)| *name == model);
    found.map(|(_, layout)| *layout)
}

/// Whether this is a configuration of an architecture that [`open`] reads.
pub(super) fn is_known(config: &Value) -> bool {
    let model = config.get("model_type").and_then(Value::as_str);
    model.and_then(layout).is_some()
}

/// A network as a configuration describes it, without the preparation of its images.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// How its tensors are named.
    pub layout: Layout,
    /// Its sizes.
    pub config: VisionConfig,
}

/// The fields of a vision configuration that are read, and two that change no feature.
const READ: [&str; 14] = [
    "model_type",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_channels",
    "image_size",
    "patch_size",
    "layer_norm_eps",
    "hidden_act",
    "mlp_ratio",
    "use_swiglu_ffn",
    "vision_use_head",
    "vocab_size",
];

impl Network {
    /// Reads an encoder's own `config.json`: a vision model's, or that of a model of images and text.
    pub fn of_file(config: &Value) -> Result<Self, PublishedError> {
        let whole = Section::whole(FILE, config)?;
        let Some(model) = whole.get::<String>("model_type")? else {
            let expected = MODELS.map(|(name, _)| name).join(", ");
            return Err(whole.error(
                "model_type",
                format!("is missing, expected one of {expected}"),
            ));
        };
        let mut sections = Vec::new();
        if matches!(model.as_str(), "clip" | "siglip") {
            // Files of 2021 say in the second what they want; it goes before the first, as in `transformers`.
            for field in ["vision_config", "vision_config_dict"] {
                sections.extend(whole.inner(field)?);
            }
        } else {
            sections.push(whole.clone());
        }
        Self::read(&whole, &model, &sections)
    }

    /// Reads the `vision_config` of another model's `config.json`, such as `LLaVA`'s, where a CLIP is meant if no
    /// `model_type` says what is.
    pub fn of_part(vision_config: &Value) -> Result<Self, PublishedError> {
        let part = Section::part(FILE, "vision_config", vision_config)?;
        let model = part.get::<String>("model_type")?;
        let model = model.unwrap_or_else(|| "clip_vision_model".to_owned());
        Self::read(&part, &model, std::slice::from_ref(&part))
    }

    /// Whether a field of a vision configuration is read here, or is known to change nothing.
    pub fn reads(field: &str) -> bool {
        READ.contains(&field)
    }

    fn read(
        named: &Section<'_>,
        model: &str,
        sections: &[Section<'_>],
    ) -> Result<Self, PublishedError> {
        let Some(layout) = layout(model) else {
            let expected = MODELS.map(|(name, _)| name).join(", ");
            let what = format!("is \"{model}\", expected one of {expected}");
            return Err(named.error("model_type", what));
        };
        let mut config = defaults(layout);
        for section in sections {
            read(section, layout, &mut config)?;
        }
        config.validate()?;
        Ok(Self { layout, config })
    }
}

/// Reads `config.json`, and the preprocessor's file for its architecture.
pub(super) fn open(
    config: &Value,
    preprocessor_config: Option<&Value>,
) -> Result<Published, PublishedError> {
    let Network { layout, mut config } = Network::of_file(config)?;
    let Some(file) = preprocessor_config else {
        return Err(PublishedError::Missing {
            file: "preprocessor_config.json",
        });
    };
    let processor = preprocessor::image_processor(file, layout)?;
    if layout == Layout::Dinov2 {
        // It takes images of any size, and brings its positions to theirs.
        let stored = config.grid();
        if let Some((height, width)) = processor.output_size()
            && height == width
        {
            config.image_size = height;
        }
        config.form.position_grid = Some(stored).filter(|stored| *stored != config.grid());
    }
    Ok(Published {
        layout,
        config,
        processor,
    })
}

/// Defaults of the architecture for missing fields (`configuration_clip.py` and its siblings).
pub(super) fn defaults(layout: Layout) -> VisionConfig {
    let base = VisionConfig {
        hidden_size: 768,
        intermediate_size: 3072,
        num_hidden_layers: 12,
        num_attention_heads: 12,
        image_size: 224,
        patch_size: 32,
        num_channels: 3,
        layer_norm_eps: 1e-5,
        hidden_act: Activation::QuickGelu,
        form: Form::clip(),
    };
    match layout {
        Layout::Siglip => VisionConfig {
            patch_size: 16,
            layer_norm_eps: 1e-6,
            hidden_act: Activation::GeluPytorchTanh,
            form: Form::siglip(),
            ..base
        },
        Layout::Dinov2 => VisionConfig {
            patch_size: 14,
            layer_norm_eps: 1e-6,
            hidden_act: Activation::Gelu,
            form: Form::dinov2(),
            ..base
        },
        _ => base,
    }
}

fn read(
    section: &Section<'_>,
    layout: Layout,
    config: &mut VisionConfig,
) -> Result<(), PublishedError> {
    section.set("hidden_size", &mut config.hidden_size)?;
    section.set("num_hidden_layers", &mut config.num_hidden_layers)?;
    section.set("num_attention_heads", &mut config.num_attention_heads)?;
    section.set("num_channels", &mut config.num_channels)?;
    section.set("layer_norm_eps", &mut config.layer_norm_eps)?;
    section.set("hidden_act", &mut config.hidden_act)?;
    section.side("image_size", &mut config.image_size)?;
    section.side("patch_size", &mut config.patch_size)?;
    // Pixels have three colours.
    section.only("num_channels", &json!(3))?;
    if layout == Layout::Dinov2 {
        section.only("use_swiglu_ffn", &json!(false))?;
        section.only("qkv_bias", &json!(true))?;
        let ratio = section.get::<f64>("mlp_ratio")?.unwrap_or(4.);
        if !(ratio > 0. && ratio <= 1e3) {
            return Err(section.error(
                "mlp_ratio",
                format!("is {ratio}, expected a positive number"),
            ));
        }
        config.intermediate_size = (config.hidden_size as f64 * ratio) as usize;
    } else {
        section.set("intermediate_size", &mut config.intermediate_size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Files;
    use super::*;

    fn open_both(config: &Value, preprocessor: &Value) -> Result<Published, PublishedError> {
        Published::open(&Files {
            config: Some(config),
            preprocessor_config: Some(preprocessor),
            ..Files::default()
        })
    }

    #[test]
    fn missing_fields_get_architecture_defaults() {
        let siglip =
            json!({"model_type": "siglip", "vision_config": {"model_type": "siglip_vision_model"}});
        let preprocessor = json!({"image_processor_type": "SiglipImageProcessor"});
        let got = open_both(&siglip, &preprocessor).unwrap();
        assert_eq!((got.config.image_size, got.config.patch_size), (224, 16));
        assert_eq!(got.config.hidden_act, Activation::GeluPytorchTanh);
        let clip = json!({"model_type": "clip", "vision_config": {"hidden_size": 1024},
            "vision_config_dict": {"hidden_size": 1024, "patch_size": 14, "num_attention_heads": 16}});
        let preprocessor = json!({"crop_size": 224, "size": 224});
        let got = open_both(&clip, &preprocessor).unwrap();
        assert_eq!((got.config.hidden_size, got.config.patch_size), (1024, 14));
    }

    #[test]
    fn dinov2_brings_its_positions_to_the_processors_images() {
        let config =
            json!({"model_type": "dinov2", "image_size": 518, "patch_size": 14, "mlp_ratio": 4});
        let preprocessor = json!({"image_processor_type": "BitImageProcessor",
            "crop_size": {"height": 224, "width": 224}, "size": {"shortest_edge": 256}});
        let got = open_both(&config, &preprocessor).unwrap();
        assert_eq!(got.config.image_size, 224);
        assert_eq!(got.config.form.position_grid, Some(37));
        assert_eq!(got.config.positions(), 37 * 37 + 1);
        let preprocessor = json!({"image_processor_type": "BitImageProcessor",
            "crop_size": {"height": 518, "width": 518}, "size": {"shortest_edge": 518}});
        let got = open_both(&config, &preprocessor).unwrap();
        assert_eq!(got.config.form.position_grid, None);
    }

    #[test]
    fn unsupported_values_are_rejected() {
        let preprocessor = json!({});
        let cases = [
            (json!({"model_type": "vit"}), "`model_type` is \"vit\""),
            (json!({}), "`model_type` is missing"),
            (
                json!({"model_type": "clip", "vision_config": {"hidden_act": "swish"}}),
                "`vision_config.hidden_act` is \"swish\"",
            ),
            (
                json!({"model_type": "dinov2", "use_swiglu_ffn": true}),
                "`use_swiglu_ffn` is true, expected false",
            ),
            (
                json!({"model_type": "clip_vision_model", "image_size": [224, 336]}),
                "`image_size` is [224,336]",
            ),
            (
                json!({"model_type": "clip_vision_model", "hidden_size": -3}),
                "`hidden_size` is -3",
            ),
            (
                json!({"model_type": "clip_vision_model", "image_size": 336}),
                "yields 224 x 224 pixels, expected 336 x 336",
            ),
            (
                json!({"model_type": "clip_vision_model", "num_attention_heads": 7}),
                "is not a multiple of `num_attention_heads` 7",
            ),
        ];
        for (config, what) in cases {
            let error = open_both(&config, &preprocessor).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            assert!(error.contains("\nhint: "), "{error}");
        }
        let alone = Files {
            config: Some(&json!({"model_type": "clip"})),
            ..Files::default()
        };
        let error = Published::open(&alone).unwrap_err().to_string();
        assert!(
            error.contains("`preprocessor_config.json` is missing"),
            "{error}"
        );
    }
}

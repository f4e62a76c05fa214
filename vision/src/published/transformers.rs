//! `config.json` of `transformers`: CLIP, `SigLIP`, `DINOv2` and `InternViT`.

use acem3_kernels::Activation;
use serde_json::{Value, json};

use super::encoder::PublishedEncoder;
use super::error::PublishedError;
use super::json_section::JsonSection;
use super::layout::EncoderLayout;
use super::{intern_vit, preprocessor};
use crate::config::{VisionConfig, VitVariant};

const FILE: &str = "config.json";

/// Supported values of `model_type`. An image-text model has its vision part in `vision_config`.
const MODEL_TYPES: [(&str, EncoderLayout); 8] = [
    ("clip", EncoderLayout::Clip),
    ("clip_vision_model", EncoderLayout::Clip),
    ("siglip", EncoderLayout::Siglip),
    ("siglip_vision_model", EncoderLayout::Siglip),
    ("dinov2", EncoderLayout::Dinov2),
    ("dinov2_backbone", EncoderLayout::Dinov2),
    ("internvl_vision", EncoderLayout::InternVl),
    ("intern_vit_6b", EncoderLayout::InternVlChat),
];

/// Returns the layout of a `model_type`; `None` if it is not supported.
fn layout_of_model_type(model_type: &str) -> Option<EncoderLayout> {
    let entry = MODEL_TYPES.iter().find(|(name, _)| *name == model_type);
    entry.map(|(_, layout)| *layout)
}

/// Returns true if the architecture of a configuration is supported.
pub(super) fn is_supported(config: &Value) -> bool {
    let model_type = config.get("model_type").and_then(Value::as_str);
    model_type.and_then(layout_of_model_type).is_some()
}

/// Layout and network of an encoder, without the preprocessing of its images.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderNetwork {
    /// Naming scheme of the tensors.
    pub layout: EncoderLayout,
    /// Configuration of the network.
    pub config: VisionConfig,
}

/// Fields of a vision configuration that this module reads, and three that do not affect the features
/// (`tie_word_embeddings`, `vision_use_head` and `vocab_size`).
const KNOWN_FIELDS: [&str; 15] = [
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
    "tie_word_embeddings",
    "vision_use_head",
    "vocab_size",
];

impl EncoderNetwork {
    /// Reads the `config.json` of a vision model or of an image-text model.
    pub fn from_config_file(config: &Value) -> Result<Self, PublishedError> {
        let file = JsonSection::root(FILE, config)?;
        let Some(model_type) = file.get::<String>("model_type")? else {
            let expected = MODEL_TYPES.map(|(name, _)| name).join(", ");
            return Err(
                file.field_error("model_type", format!("is missing, expected one of {expected}"))
            );
        };
        let mut sections = Vec::new();
        if matches!(model_type.as_str(), "clip" | "siglip") {
            // Files of 2021 have `vision_config_dict`, which overrides `vision_config` in
            // `transformers`.
            for field in ["vision_config", "vision_config_dict"] {
                sections.extend(file.child(field)?);
            }
        } else {
            sections.push(file.clone());
        }
        Self::from_sections(&file, &model_type, &sections)
    }

    /// Reads the `vision_config` in the `config.json` of another model, such as `LLaVA`.
    ///
    /// Without a `model_type`, the encoder is a CLIP.
    pub fn from_vision_config(vision_config: &Value) -> Result<Self, PublishedError> {
        let section = JsonSection::from_field_value(FILE, "vision_config", vision_config)?;
        let model_type = section.get::<String>("model_type")?;
        let model_type = model_type.unwrap_or_else(|| "clip_vision_model".to_owned());
        Self::from_sections(&section, &model_type, std::slice::from_ref(&section))
    }

    /// Returns true if a field of a vision configuration is read here or does not affect the
    /// features.
    pub fn is_known_field(&self, field: &str) -> bool {
        let is_intern_vit =
            matches!(self.layout, EncoderLayout::InternVl | EncoderLayout::InternVlChat);
        KNOWN_FIELDS.contains(&field) || (is_intern_vit && intern_vit::is_known_field(field))
    }

    /// Reads the settings of the sections; later sections override earlier ones.
    ///
    /// `type_section` is the section that contains `model_type`.
    fn from_sections(
        type_section: &JsonSection<'_>,
        model_type: &str,
        sections: &[JsonSection<'_>],
    ) -> Result<Self, PublishedError> {
        let Some(layout) = layout_of_model_type(model_type) else {
            let expected = MODEL_TYPES.map(|(name, _)| name).join(", ");
            let problem = format!("is \"{model_type}\", expected one of {expected}");
            return Err(type_section.field_error("model_type", problem));
        };
        let mut config = default_config(layout);
        for section in sections {
            read_fields(section, layout, &mut config)?;
        }
        config.validate()?;
        Ok(Self { layout, config })
    }
}

/// Reads `config.json` and the preprocessor configuration.
pub(super) fn read_encoder(
    config: &Value,
    preprocessor_config: Option<&Value>,
) -> Result<PublishedEncoder, PublishedError> {
    let EncoderNetwork { layout, mut config } = EncoderNetwork::from_config_file(config)?;
    let Some(file) = preprocessor_config else {
        return Err(PublishedError::MissingFile { file: "preprocessor_config.json" });
    };
    let processor = preprocessor::read_image_processor(file, layout)?;
    if layout == EncoderLayout::Dinov2 {
        // DINOv2 accepts images of any size and interpolates its position embeddings.
        let stored_grid = config.grid_side();
        if let Some((height, width)) = processor.output_size()
            && height == width
        {
            config.image_size = height;
        }
        config.variant.position_grid = Some(stored_grid).filter(|grid| *grid != config.grid_side());
    }
    Ok(PublishedEncoder { layout, config, processor })
}

/// Returns the architecture's defaults for missing fields (`configuration_clip.py`,
/// `configuration_siglip.py` and `configuration_dinov2.py` of `transformers`).
pub(super) fn default_config(layout: EncoderLayout) -> VisionConfig {
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
        variant: VitVariant::clip(),
    };
    match layout {
        EncoderLayout::Siglip => VisionConfig {
            patch_size: 16,
            layer_norm_eps: 1e-6,
            hidden_act: Activation::GeluPytorchTanh,
            variant: VitVariant::siglip(),
            ..base
        },
        EncoderLayout::Dinov2 => VisionConfig {
            patch_size: 14,
            layer_norm_eps: 1e-6,
            hidden_act: Activation::Gelu,
            variant: VitVariant::dinov2(),
            ..base
        },
        EncoderLayout::InternVl | EncoderLayout::InternVlChat => intern_vit::default_config(layout),
        _ => base,
    }
}

/// Reads the fields of a section into `config`.
fn read_fields(
    section: &JsonSection<'_>,
    layout: EncoderLayout,
    config: &mut VisionConfig,
) -> Result<(), PublishedError> {
    section.read_into("hidden_size", &mut config.hidden_size)?;
    section.read_into("num_hidden_layers", &mut config.num_hidden_layers)?;
    section.read_into("num_attention_heads", &mut config.num_attention_heads)?;
    section.read_into("num_channels", &mut config.num_channels)?;
    section.read_into("layer_norm_eps", &mut config.layer_norm_eps)?;
    section.read_into("hidden_act", &mut config.hidden_act)?;
    section.read_side("image_size", &mut config.image_size)?;
    section.read_side("patch_size", &mut config.patch_size)?;
    // The image processor returns RGB.
    section.expect_value("num_channels", &json!(3))?;
    if matches!(layout, EncoderLayout::InternVl | EncoderLayout::InternVlChat) {
        intern_vit::check_fields(section, layout)?;
    }
    if layout == EncoderLayout::Dinov2 {
        section.expect_value("use_swiglu_ffn", &json!(false))?;
        section.expect_value("qkv_bias", &json!(true))?;
        let mlp_ratio = section.get::<f64>("mlp_ratio")?.unwrap_or(4.);
        if !(mlp_ratio > 0. && mlp_ratio <= 1e3) {
            return Err(section.field_error(
                "mlp_ratio",
                format!("is {mlp_ratio}, expected a positive number up to 1000"),
            ));
        }
        config.intermediate_size = (config.hidden_size as f64 * mlp_ratio) as usize;
    } else {
        section.read_into("intermediate_size", &mut config.intermediate_size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::EncoderFiles;
    use super::*;

    fn open_both(config: &Value, preprocessor: &Value) -> Result<PublishedEncoder, PublishedError> {
        PublishedEncoder::from_files(&EncoderFiles {
            config: Some(config),
            preprocessor_config: Some(preprocessor),
            ..EncoderFiles::default()
        })
    }

    #[test]
    fn missing_fields_get_architecture_defaults() {
        let siglip =
            json!({"model_type": "siglip", "vision_config": {"model_type": "siglip_vision_model"}});
        let preprocessor = json!({"image_processor_type": "SiglipImageProcessor"});
        let encoder = open_both(&siglip, &preprocessor).unwrap();
        assert_eq!((encoder.config.image_size, encoder.config.patch_size), (224, 16));
        assert_eq!(encoder.config.hidden_act, Activation::GeluPytorchTanh);
        let clip = json!({"model_type": "clip", "vision_config": {"hidden_size": 1024},
            "vision_config_dict": {"hidden_size": 1024, "patch_size": 14, "num_attention_heads": 16}});
        let preprocessor = json!({"crop_size": 224, "size": 224});
        let encoder = open_both(&clip, &preprocessor).unwrap();
        assert_eq!((encoder.config.hidden_size, encoder.config.patch_size), (1024, 14));
    }

    #[test]
    fn dinov2_positions_are_interpolated_to_the_crop_size() {
        let config =
            json!({"model_type": "dinov2", "image_size": 518, "patch_size": 14, "mlp_ratio": 4});
        let preprocessor = json!({"image_processor_type": "BitImageProcessor",
            "crop_size": {"height": 224, "width": 224}, "size": {"shortest_edge": 256}});
        let encoder = open_both(&config, &preprocessor).unwrap();
        assert_eq!(encoder.config.image_size, 224);
        assert_eq!(encoder.config.variant.position_grid, Some(37));
        assert_eq!(encoder.config.position_count(), 37 * 37 + 1);
        let preprocessor = json!({"image_processor_type": "BitImageProcessor",
            "crop_size": {"height": 518, "width": 518}, "size": {"shortest_edge": 518}});
        let encoder = open_both(&config, &preprocessor).unwrap();
        assert_eq!(encoder.config.variant.position_grid, None);
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
            (json!({"model_type": "clip_vision_model", "hidden_size": -3}), "`hidden_size` is -3"),
            (
                json!({"model_type": "clip_vision_model", "image_size": 336}),
                "yields 224 x 224 pixels, expected 336 x 336",
            ),
            (
                json!({"model_type": "clip_vision_model", "num_attention_heads": 7}),
                "expected a multiple of `num_attention_heads`, 7",
            ),
        ];
        for (config, expected) in cases {
            let error = open_both(&config, &preprocessor).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("\nhint: "), "{error}");
        }
        let without_preprocessor = EncoderFiles {
            config: Some(&json!({"model_type": "clip"})),
            ..EncoderFiles::default()
        };
        let error = PublishedEncoder::from_files(&without_preprocessor).unwrap_err().to_string();
        assert!(error.contains("`preprocessor_config.json` is missing"), "{error}");
    }
}

//! Parser of `config.json`: the decoder, an optional vision tower, and the layout of tensor names.

mod gemma3;
mod intern_vl;
mod llava;
mod resolutions;
mod transformers;

use acem3_experts::decoder::DecoderConfig;
use acem3_experts::prompt::ImageMarkers;
use anyhow::Result;
use serde_json::{Map, Value};

use super::decoder::{DecoderFamily, parse_decoder};
use super::vision_part::VisionPart;
use crate::checkpoints::published::config_fields::ConfigFields;
use crate::checkpoints::published::tensor_names::CheckpointLayout;

/// A checkpoint's configuration.
#[derive(Clone, Debug)]
pub(in crate::checkpoints::published) struct CheckpointConfig {
    /// Its `model_type`.
    pub model_type: String,
    /// Layout of the tensor names.
    pub layout: CheckpointLayout,
    /// Decoder configuration.
    pub decoder: DecoderConfig,
    /// Vision configuration; `None` for a text-only model.
    pub vision: Option<VisionPart>,
    /// Default chat template of the model type.
    pub default_chat_template: &'static str,
    /// Text that the model type expects around the image tokens.
    pub image_markers: ImageMarkers,
}

impl CheckpointConfig {
    /// Parses a configuration. `ignored`: unknown fields that do not affect the computation.
    pub(in crate::checkpoints::published) fn parse(
        map: Map<String, Value>,
        ignored: &[String],
    ) -> Result<Self> {
        let architectures = map.get("architectures").map(Value::to_string).unwrap_or_default();
        let mut fields = ConfigFields::new("", map);
        fields.expect_value("quantization_config", Value::Null)?;
        let kind: String = fields.require("model_type")?;
        match kind.as_str() {
            "llava_llama" => Self::parse_llava(kind, fields, DecoderFamily::Llama, ignored),
            "llava_mistral" => Self::parse_llava(kind, fields, DecoderFamily::Mistral, ignored),
            "llava_qwen2" | "llava_qwen" => {
                Self::parse_llava(kind, fields, DecoderFamily::Qwen2, ignored)
            }
            // LLaVA before 1.1, and models trained with its code.
            "llava" if !fields.has("text_config") => {
                let family = DecoderFamily::of_llava_class(&architectures);
                Self::parse_llava(kind, fields, family, ignored)
            }
            "gemma3" => Self::parse_gemma(kind, fields, ignored),
            "gemma3_text" => Self::parse_gemma_text(kind, fields, ignored),
            "llava" | "llava_next" | "llava_onevision" => {
                Self::parse_transformers(kind, fields, ignored)
            }
            "internvl" => Self::parse_intern_vl(kind, fields, ignored),
            "internvl_chat" => Self::parse_intern_vl_chat(kind, fields, ignored),
            // LLaVA's training code may keep the `model_type` of the language model. The field
            // `mm_vision_tower` then marks the model as multimodal.
            other if fields.has("mm_vision_tower") => {
                let family = DecoderFamily::from_model_type(other)?;
                Self::parse_llava(kind, fields, family, ignored)
            }
            other => {
                let family = DecoderFamily::from_model_type(other)?;
                let decoder = parse_decoder(&mut fields, family)?;
                fields.finish(ignored)?;
                Ok(Self::of_text_model(kind, decoder, "plain"))
            }
        }
    }

    /// Returns the configuration of a text-only model in transformers.
    fn of_text_model(
        model_type: String,
        decoder: DecoderConfig,
        default_chat_template: &'static str,
    ) -> Self {
        Self {
            model_type,
            layout: CheckpointLayout::Plain,
            decoder,
            vision: None,
            default_chat_template,
            image_markers: ImageMarkers::default(),
        }
    }
}

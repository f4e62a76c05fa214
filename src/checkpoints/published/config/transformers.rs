//! Configuration of transformers' layouts of LLaVA.

use acem3_experts::decoder::DecoderConfig;
use acem3_experts::prompt::ImageMarkers;
use acem3_projector::ProjectorKind;
use acem3_vision::{AnyResMax, RegionRounding, Resolutions, SelectFeature, Selection, Tiling};
use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::CheckpointConfig;
use super::resolutions::parse_max_tiles;
use crate::checkpoints::published::config_fields::{ConfigFields, unsupported};
use crate::checkpoints::published::decoder::{DecoderFamily, parse_decoder};
use crate::checkpoints::published::tensor_names::CheckpointLayout;
use crate::checkpoints::published::vision;
use crate::checkpoints::published::vision_part::VisionPart;

/// Layout of transformers, with its own defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LlavaKind {
    /// `llava` (`configuration_llava.py`).
    Llava,
    /// `llava_next` (`configuration_llava_next.py`).
    Next,
    /// `llava_onevision` (`configuration_llava_onevision.py`).
    OneVision,
}

impl LlavaKind {
    fn of_model_type(model_type: &str) -> Self {
        match model_type {
            "llava_next" => Self::Next,
            "llava_onevision" => Self::OneVision,
            _ => Self::Llava,
        }
    }

    /// Returns the default of `vision_feature_layer` and `vision_feature_select_strategy`.
    fn default_features(self) -> (i64, &'static str) {
        if self == Self::OneVision { (-1, "full") } else { (-2, "default") }
    }
}

/// How a model type reads its `text_config`.
#[derive(Clone, Copy)]
pub(super) struct TextPart {
    /// Default `model_type`.
    pub default_type: &'static str,
    /// True if an inner `tie_word_embeddings` ties the output layer even if the outer one does not.
    pub either_ties: bool,
}

impl CheckpointConfig {
    /// Parses the transformers layouts `llava`, `llava_next` and `llava_onevision`: one nested
    /// configuration per part.
    pub(super) fn parse_transformers(
        kind: String,
        mut fields: ConfigFields,
        ignored: &[String],
    ) -> Result<Self> {
        let layout = LlavaKind::of_model_type(&kind);
        let is_onevision = layout == LlavaKind::OneVision;
        let text = TextPart {
            default_type: if is_onevision { "qwen2" } else { "llama" },
            either_ties: is_onevision,
        };
        let (family, decoder) = Self::parse_text_config(&mut fields, text, ignored)?;
        let vision =
            VisionPart::from_transformers(&mut fields, decoder.hidden_size, layout, ignored)?;
        fields.finish(ignored)?;
        Ok(Self {
            model_type: kind,
            layout: CheckpointLayout::Transformers,
            decoder,
            vision: Some(vision),
            default_chat_template: family.default_chat_template(),
            image_markers: ImageMarkers::default(),
        })
    }

    /// Reads the decoder from `text_config`, and from the outer fields that override it.
    pub(super) fn parse_text_config(
        fields: &mut ConfigFields,
        part: TextPart,
        ignored: &[String],
    ) -> Result<(DecoderFamily, DecoderConfig)> {
        let mut text = fields.take_object("text_config")?.context("text_config is missing")?;
        let model_type: String = text.take_or("model_type", part.default_type.to_owned())?;
        let family = DecoderFamily::from_model_type(&model_type).context("text_config")?;
        // The outer `tie_word_embeddings` applies to the complete model and takes precedence.
        let tie_word_embeddings: Option<bool> = fields.take("tie_word_embeddings")?;
        // The outer `vocab_size` is the default of the inner one.
        let outer_vocab_size: Option<usize> = fields.take("vocab_size")?;
        let has_vocab_size = text.has("vocab_size");
        let mut decoder = parse_decoder(&mut text, family).context("text_config")?;
        let is_tied_inside = decoder.tie_word_embeddings;
        decoder.tie_word_embeddings =
            tie_word_embeddings.unwrap_or(is_tied_inside) || (part.either_ties && is_tied_inside);
        if let (false, Some(outer_vocab_size)) = (has_vocab_size, outer_vocab_size) {
            decoder.vocab_size = outer_vocab_size;
        }
        text.finish(ignored)?;
        Ok((family, decoder))
    }
}

impl VisionPart {
    /// Reads the vision part.
    fn from_transformers(
        fields: &mut ConfigFields,
        hidden_size: usize,
        layout: LlavaKind,
        ignored: &[String],
    ) -> Result<Self> {
        let vision_config: Option<Value> = fields.take("vision_config")?;
        let mut vision_config = vision_config.context("vision_config is missing")?;
        if let (LlavaKind::OneVision, Value::Object(tower)) = (layout, &mut vision_config) {
            tower.entry("model_type").or_insert_with(|| "siglip_vision_model".into());
        }
        let network = vision::from_vision_config(vision_config, ignored)?;
        let (select_layer, strategy) = layout.default_features();
        let strategy: String =
            fields.take_or("vision_feature_select_strategy", strategy.to_owned())?;
        let has_class_token = network.config.variant.class_token;
        let select_feature = match strategy.as_str() {
            // The reference would drop a patch.
            "default" if !has_class_token => bail!(
                "vision_feature_select_strategy is `default`, expected full: the vision tower has no \
                 class token to drop"
            ),
            // Rows of patches cannot contain a class token.
            "full" if has_class_token && layout != LlavaKind::Llava => bail!(
                "vision_feature_select_strategy is `full`, expected default with a class token"
            ),
            "default" => SelectFeature::Patch,
            "full" => SelectFeature::ClsPatch,
            other => bail!("vision_feature_select_strategy is `{other}`, expected default or full"),
        };
        fields.expect_value("projector_hidden_act", "gelu")?;
        fields.expect_value("multimodal_projector_bias", true)?;
        Ok(Self {
            network: Some(network),
            tower_name: None,
            selection: Selection {
                select_layer: fields.take_or("vision_feature_layer", select_layer)?,
                select_feature,
                post_norm: false,
            },
            projector: ProjectorKind::Mlp2xGelu,
            hidden_size,
            pads_to_square: false,
            tiling: parse_tiling(fields, layout)?,
        })
    }
}

/// Reads the method of tiling.
fn parse_tiling(fields: &mut ConfigFields, layout: LlavaKind) -> Result<Option<Tiling>> {
    if layout == LlavaKind::Llava {
        return Ok(None);
    }
    fields.expect_value("use_image_newline_parameter", true)?;
    let pinpoints = fields.take("image_grid_pinpoints")?;
    if layout == LlavaKind::Next {
        let default = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];
        return Ok(Some(Tiling::Pinpoints(pinpoints.unwrap_or_else(|| default.to_vec()))));
    }
    let method: String = fields.take_or("vision_aspect_ratio", "anyres_max_9".to_owned())?;
    let Some(max_tiles) = parse_max_tiles("vision_aspect_ratio", &method)? else {
        return Err(unsupported(
            &format!("vision_aspect_ratio is `{method}`, only anyres_max_N is supported"),
            "use a checkpoint such as llava-hf/llava-onevision-qwen2-7b-ov-hf",
        ));
    };
    let default = || (1..=6).flat_map(|h| (1..=6).map(move |w| [384 * h, 384 * w])).collect();
    Ok(Some(Tiling::AnyResMax(AnyResMax {
        resolutions: Resolutions::Pixels(pinpoints.unwrap_or_else(default)),
        max_tiles,
        rounding: RegionRounding::Decimals,
    })))
}

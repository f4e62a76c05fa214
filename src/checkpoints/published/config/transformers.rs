//! Configuration of transformers' layouts of LLaVA.

use acem3_experts::decoder::DecoderConfig;
use acem3_experts::prompt::ImageMarkers;
use acem3_projector::ProjectorKind;
use acem3_vision::{SelectFeature, Selection, Tiling};
use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::CheckpointConfig;
use crate::checkpoints::published::config_fields::ConfigFields;
use crate::checkpoints::published::decoder::{DecoderFamily, parse_decoder};
use crate::checkpoints::published::tensor_names::CheckpointLayout;
use crate::checkpoints::published::vision;
use crate::checkpoints::published::vision_part::VisionPart;

impl CheckpointConfig {
    /// Parses the transformers layouts `llava` (`configuration_llava.py`) and `llava_next`: one
    /// nested configuration per part.
    pub(super) fn parse_transformers(
        kind: String,
        mut fields: ConfigFields,
        ignored: &[String],
    ) -> Result<Self> {
        let (family, decoder) = Self::parse_text_config(&mut fields, "llama", ignored)?;
        let tiled = kind == "llava_next";
        let vision =
            VisionPart::from_transformers(&mut fields, decoder.hidden_size, tiled, ignored)?;
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

    /// Reads the decoder from `text_config`, whose default `model_type` is `default_type`, and from the
    /// outer fields that override it.
    pub(super) fn parse_text_config(
        fields: &mut ConfigFields,
        default_type: &str,
        ignored: &[String],
    ) -> Result<(DecoderFamily, DecoderConfig)> {
        let mut text = fields.take_object("text_config")?.context("text_config is missing")?;
        let model_type: String = text.take_or("model_type", default_type.to_owned())?;
        let family = DecoderFamily::from_model_type(&model_type).context("text_config")?;
        // The outer `tie_word_embeddings` applies to the complete model and takes precedence.
        let tie_word_embeddings: Option<bool> = fields.take("tie_word_embeddings")?;
        // The outer `vocab_size` is the default of the inner one.
        let outer_vocab_size: Option<usize> = fields.take("vocab_size")?;
        let has_vocab_size = text.has("vocab_size");
        let mut decoder = parse_decoder(&mut text, family).context("text_config")?;
        decoder.tie_word_embeddings = tie_word_embeddings.unwrap_or(decoder.tie_word_embeddings);
        if let (false, Some(outer_vocab_size)) = (has_vocab_size, outer_vocab_size) {
            decoder.vocab_size = outer_vocab_size;
        }
        text.finish(ignored)?;
        Ok((family, decoder))
    }
}

impl VisionPart {
    /// Reads the vision part of `llava`, or of `llava_next` if `tiled`.
    fn from_transformers(
        fields: &mut ConfigFields,
        hidden_size: usize,
        tiled: bool,
        ignored: &[String],
    ) -> Result<Self> {
        let vision_config: Option<Value> = fields.take("vision_config")?;
        let network = vision::from_vision_config(
            vision_config.context("vision_config is missing")?,
            ignored,
        )?;
        let strategy: String =
            fields.take_or("vision_feature_select_strategy", "default".to_owned())?;
        let has_class_token = network.config.variant.class_token;
        let select_feature = match strategy.as_str() {
            // The reference would drop a patch.
            "default" if !has_class_token => bail!(
                "vision_feature_select_strategy is `default`, expected full: the vision tower has no \
                 class token to drop"
            ),
            // Rows of patches cannot contain a class token.
            "full" if has_class_token && tiled => bail!(
                "vision_feature_select_strategy is `full`, expected default with a class token"
            ),
            "default" => SelectFeature::Patch,
            "full" => SelectFeature::ClsPatch,
            other => bail!("vision_feature_select_strategy is `{other}`, expected default or full"),
        };
        fields.expect_value("projector_hidden_act", "gelu")?;
        fields.expect_value("multimodal_projector_bias", true)?;
        let tiling = if tiled {
            fields.expect_value("use_image_newline_parameter", true)?;
            let default = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];
            let pinpoints = fields.take_or("image_grid_pinpoints", default.to_vec())?;
            Some(Tiling::Pinpoints(pinpoints))
        } else {
            None
        };
        Ok(Self {
            network: Some(network),
            tower_name: None,
            selection: Selection {
                select_layer: fields.take_or("vision_feature_layer", -2)?,
                select_feature,
                post_norm: false,
            },
            projector: ProjectorKind::Mlp2xGelu,
            hidden_size,
            pads_to_square: false,
            tiling,
        })
    }
}

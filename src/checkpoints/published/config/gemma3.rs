//! Configuration of Gemma 3 and `MedGemma` (transformers' `configuration_gemma3.py`).

use acem3_experts::prompt::ImageMarkers;
use acem3_projector::{PooledProjection, ProjectorKind};
use acem3_vision::{SelectFeature, Selection};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::CheckpointConfig;
use crate::checkpoints::published::config_fields::ConfigFields;
use crate::checkpoints::published::gemma_decoder::parse_gemma_decoder;
use crate::checkpoints::published::tensor_names::CheckpointLayout;
use crate::checkpoints::published::vision;
use crate::checkpoints::published::vision_part::VisionPart;

/// Chat template of Gemma.
const CHAT_TEMPLATE: &str = "gemma";

impl CheckpointConfig {
    /// Parses the configuration of a text model.
    pub(super) fn parse_gemma_text(
        kind: String,
        mut fields: ConfigFields,
        ignored: &[String],
    ) -> Result<Self> {
        let decoder = parse_gemma_decoder(&mut fields)?;
        fields.finish(ignored)?;
        Ok(Self::of_text_model(kind, decoder, CHAT_TEMPLATE))
    }

    /// Parses the configuration of a model with a vision tower.
    pub(super) fn parse_gemma(
        kind: String,
        mut fields: ConfigFields,
        ignored: &[String],
    ) -> Result<Self> {
        let mut text = fields.take_object("text_config")?.context("text_config is missing")?;
        text.expect_value("model_type", "gemma3_text")?;
        let tie_word_embeddings: Option<bool> = fields.take("tie_word_embeddings")?;
        let mut decoder = parse_gemma_decoder(&mut text).context("text_config")?;
        decoder.tie_word_embeddings = tie_word_embeddings.unwrap_or(decoder.tie_word_embeddings);
        text.finish(ignored)?;
        let vision = parse_vision(&mut fields, decoder.hidden_size, ignored)?;
        // Ids of tokens that the text of the prompt contains.
        for field in ["boi_token_index", "eoi_token_index"] {
            fields.take::<u32>(field)?;
        }
        fields.finish(ignored)?;
        Ok(Self {
            model_type: kind,
            layout: CheckpointLayout::Gemma3,
            decoder,
            vision: Some(vision),
            default_chat_template: CHAT_TEMPLATE,
            // transformers' `processing_gemma3.py`.
            image_markers: ImageMarkers::new("\n\n<start_of_image>", "<end_of_image>\n\n"),
        })
    }
}

/// Reads the vision tower and the projector.
fn parse_vision(
    fields: &mut ConfigFields,
    hidden_size: usize,
    ignored: &[String],
) -> Result<VisionPart> {
    let vision_config: Option<Map<String, Value>> = fields.take("vision_config")?;
    let mut vision_config = vision_config.context("vision_config is missing")?;
    // The attention pool, whose output is not used.
    vision_config.remove("vision_use_head");
    let network = vision::from_vision_config(Value::Object(vision_config), ignored)?;
    let tokens: usize = fields.take_or("mm_tokens_per_image", 256)?;
    let tokens_per_side = tokens.isqrt();
    let grid = network.config.grid_side();
    let is_square = tokens_per_side * tokens_per_side == tokens;
    if tokens == 0 || !is_square || !grid.is_multiple_of(tokens_per_side) {
        bail!(
            "mm_tokens_per_image is {tokens}, expected a square whose side divides {grid}, the \
             patches per side of the vision tower"
        );
    }
    Ok(VisionPart {
        tower_name: None,
        selection: Selection {
            select_layer: -1,
            select_feature: SelectFeature::Patch,
            post_norm: true,
        },
        projector: ProjectorKind::Pooled(PooledProjection {
            tokens_per_side,
            norm_eps: network.config.layer_norm_eps,
        }),
        network: Some(network),
        hidden_size,
        pads_to_square: false,
        tiling: None,
    })
}

//! Configuration of `InternVL`, in the layout of transformers (`configuration_internvl.py`) and in
//! that of its own code (`configuration_internvl_chat.py`).

use acem3_experts::prompt::ImageMarkers;
use acem3_projector::ProjectorKind;
use acem3_vision::published::EncoderNetwork;
use acem3_vision::{EncoderLayout, SelectFeature, Selection, Tiling};
use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::CheckpointConfig;
use super::transformers::TextPart;
use crate::checkpoints::published::config_fields::{ConfigFields, unsupported};
use crate::checkpoints::published::decoder::{DecoderFamily, parse_decoder};
use crate::checkpoints::published::tensor_names::CheckpointLayout;
use crate::checkpoints::published::vision;
use crate::checkpoints::published::vision_part::VisionPart;

/// The name of the dialogue of `InternVL` 2.5 and 3 in `InternVL`'s own code.
const OWN_TEMPLATE: &str = "internvl2_5";
/// Largest supported side of a square of joined patches.
const MAX_FACTOR: f64 = 16.0;

impl CheckpointConfig {
    /// Parses the transformers layout `internvl`.
    pub(super) fn parse_intern_vl(
        kind: String,
        mut fields: ConfigFields,
        ignored: &[String],
    ) -> Result<Self> {
        let text = TextPart { default_type: "qwen2", either_ties: false };
        let (_, decoder) = Self::parse_text_config(&mut fields, text, ignored)?;
        let network = parse_network(&mut fields, EncoderLayout::InternVl, ignored)?;
        fields.expect_value("projector_hidden_act", "gelu")?;
        fields.expect_value("vision_feature_select_strategy", "default")?;
        let vision = VisionPart {
            projector: parse_projector(&mut fields, &network)?,
            selection: select_patches(fields.take_or("vision_feature_layer", -1)?),
            network: Some(network),
            tower_name: None,
            hidden_size: decoder.hidden_size,
            pads_to_square: false,
            // The limits are in the configuration of the image processor.
            tiling: Some(Tiling::INTERN_VL),
        };
        fields.finish(ignored)?;
        Ok(Self {
            layout: CheckpointLayout::InternVl,
            decoder,
            vision: Some(vision),
            default_chat_template: "internvl",
            image_markers: image_markers(),
            model_type: kind,
        })
    }

    /// Parses the layout of `InternVL`'s own code.
    pub(super) fn parse_intern_vl_chat(
        kind: String,
        mut fields: ConfigFields,
        ignored: &[String],
    ) -> Result<Self> {
        let mut text = fields.take_object("llm_config")?.context("llm_config is missing")?;
        let model_type: String = text.require("model_type")?;
        let family = DecoderFamily::from_model_type(&model_type).context("llm_config")?;
        let mut decoder = parse_decoder(&mut text, family).context("llm_config")?;
        text.finish(ignored)?;
        decoder.tie_word_embeddings = fields.take_or("tie_word_embeddings", false)?;
        let mut network = parse_network(&mut fields, EncoderLayout::InternVlChat, ignored)?;
        if let Some(side) = fields.take("force_image_size")? {
            let stored_grid = network.config.grid_side();
            network.config.image_size = side;
            network.config.variant.position_grid =
                Some(stored_grid).filter(|grid| *grid != network.config.grid_side());
        }
        let template: String = fields.require("template")?;
        if template != OWN_TEMPLATE {
            return Err(unsupported(
                &format!("template is `{template}`, only {OWN_TEMPLATE} is supported"),
                "use InternVL 2.5 or 3, or the checkpoint of transformers with `-hf` in its name",
            ));
        }
        let version = fields.take_or("ps_version", "v1".to_owned())?;
        if version != "v2" {
            return Err(unsupported(
                &format!("ps_version is `{version}`, only v2 is supported"),
                "use InternVL 2.5 or 3",
            ));
        }
        for name in ["use_backbone_lora", "use_llm_lora"] {
            fields.expect_value(name, 0)?;
        }
        fields.expect_value("image_fold", Value::Null)?;
        fields.expect_value("system_message", Value::Null)?;
        fields.expect_value("hidden_size", decoder.hidden_size)?;
        let vision = VisionPart {
            projector: parse_projector(&mut fields, &network)?,
            selection: select_patches(fields.take_or("select_layer", -1)?),
            network: Some(network),
            tower_name: None,
            hidden_size: decoder.hidden_size,
            pads_to_square: fields.take_or("pad2square", false)?,
            tiling: parse_tiling(&mut fields)?,
        };
        fields.finish(ignored)?;
        Ok(Self {
            layout: CheckpointLayout::InternVlChat,
            decoder,
            vision: Some(vision),
            default_chat_template: "internvl_chat",
            image_markers: image_markers(),
            model_type: kind,
        })
    }
}

/// Returns the text around the image tokens (`processing_internvl.py`).
fn image_markers() -> ImageMarkers {
    ImageMarkers::new("<img>", "</img>")
}

/// Returns the selection of the patches of a layer, without the class token.
fn select_patches(select_layer: i64) -> Selection {
    Selection { select_layer, select_feature: SelectFeature::Patch, post_norm: false }
}

/// Reads `vision_config`.
fn parse_network(
    fields: &mut ConfigFields,
    layout: EncoderLayout,
    ignored: &[String],
) -> Result<EncoderNetwork> {
    let config: Value = fields.take("vision_config")?.context("vision_config is missing")?;
    vision::from_intern_vit_config(config, layout, ignored)
}

/// Reads `downsample_ratio`, the inverse of the side of a square of joined patches.
fn parse_projector(fields: &mut ConfigFields, network: &EncoderNetwork) -> Result<ProjectorKind> {
    let ratio: f64 = fields.take_or("downsample_ratio", 0.5)?;
    let factor = (1.0 / ratio).round();
    if !((1.0..=MAX_FACTOR).contains(&factor) && (ratio * factor - 1.0).abs() < 1e-6) {
        bail!(
            "downsample_ratio is {ratio}, expected the inverse of a number from 1 to {MAX_FACTOR}"
        );
    }
    let (factor, grid) = (factor as usize, network.config.grid_side());
    if !grid.is_multiple_of(factor) {
        bail!(
            "downsample_ratio is {ratio}, but the {grid} patches along the side of an image are no \
             multiple of {factor}\n\
             hint: check image_size and patch_size in vision_config"
        );
    }
    Ok(ProjectorKind::PixelShuffle { factor })
}

/// Reads the method of tiling of `InternVL`'s own code.
fn parse_tiling(fields: &mut ConfigFields) -> Result<Option<Tiling>> {
    let is_dynamic = fields.take_or("dynamic_image_size", false)?;
    let tiling = Tiling::Dynamic {
        min_tiles: fields.take_or("min_dynamic_patch", 1)?,
        max_tiles: fields.take_or("max_dynamic_patch", 6)?,
        thumbnail: fields.take_or("use_thumbnail", false)?,
    };
    Ok(is_dynamic.then_some(tiling))
}

//! Parser of `config.json`: the decoder, an optional vision tower, and the layout of tensor names.

use super::vision_part::VisionPart;
use acem3_experts::decoder::DecoderConfig;
use acem3_projector::ProjectorKind;
use acem3_vision::{SelectFeature, Selection};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::decoder::{DecoderFamily, parse_decoder};
use super::vision;
use crate::checkpoints::published::config_fields::ConfigFields;
use crate::checkpoints::published::tensor_names::CheckpointLayout;

/// A checkpoint's configuration.
#[derive(Clone, Debug)]
pub(super) struct CheckpointConfig {
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
}

/// Returns the decoder family of LLaVA's own code by the name of its class. `architectures`: the JSON of
/// the field.
fn family_of_architecture(architectures: &str) -> DecoderFamily {
    if architectures.contains("Qwen") {
        DecoderFamily::Qwen2
    } else if architectures.contains("Mistral") {
        DecoderFamily::Mistral
    } else {
        DecoderFamily::Llama
    }
}

impl CheckpointConfig {
    /// Parses a configuration. `ignored`: unknown fields that do not affect the computation.
    pub(super) fn parse(map: Map<String, Value>, ignored: &[String]) -> Result<Self> {
        let architectures = map.get("architectures").map(Value::to_string).unwrap_or_default();
        let mut fields = ConfigFields::new("", map);
        fields.expect_value("quantization_config", Value::Null)?;
        let kind: String = fields.require("model_type")?;
        match kind.as_str() {
            "llava_llama" => Self::parse_llava(kind, fields, DecoderFamily::Llama, ignored),
            "llava_mistral" => Self::parse_llava(kind, fields, DecoderFamily::Mistral, ignored),
            "llava_qwen2" => Self::parse_llava(kind, fields, DecoderFamily::Qwen2, ignored),
            // LLaVA before 1.1, and models trained with its code.
            "llava" if !fields.has("text_config") => {
                let family = family_of_architecture(&architectures);
                Self::parse_llava(kind, fields, family, ignored)
            }
            "llava" | "llava_next" => Self::parse_transformers(kind, fields, ignored),
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
                Ok(Self {
                    model_type: kind,
                    layout: CheckpointLayout::Plain,
                    decoder,
                    vision: None,
                    default_chat_template: "plain",
                })
            }
        }
    }

    /// Parses the layout of LLaVA's own code (`llava_arch.py`): a language model's configuration
    /// with `mm_` fields.
    fn parse_llava(
        kind: String,
        mut fields: ConfigFields,
        family: DecoderFamily,
        ignored: &[String],
    ) -> Result<Self> {
        let decoder = parse_decoder(&mut fields, family)?;
        for (name, value) in [("mm_use_im_start_end", false), ("mm_resampler", false)] {
            fields.expect_value(name, value)?;
        }
        let aspect = AspectRatioMode::from_fields(&mut fields)?;
        let tower: Option<String> = fields.take("mm_vision_tower")?;
        let old_tower: Option<String> = fields.take("vision_tower")?;
        let projector = match fields.take::<String>("mm_projector_type")?.as_deref() {
            None | Some("linear") => ProjectorKind::Linear,
            Some("mlp2x_gelu") => ProjectorKind::Mlp2xGelu,
            Some(other) => {
                bail!("mm_projector_type is `{other}`, only linear and mlp2x_gelu are supported")
            }
        };
        let select_feature = fields.take_or("mm_vision_select_feature", "patch".to_owned())?;
        if aspect.pinpoints.is_some() && select_feature != "patch" {
            bail!(
                "mm_vision_select_feature is `{select_feature}`, expected patch for images in tiles"
            );
        }
        let vision = VisionPart {
            network: None,
            tower_name: Some(tower.or(old_tower).context("mm_vision_tower is missing")?),
            selection: parse_selection(
                fields.take_or("mm_vision_select_layer", -2)?,
                &select_feature,
            )?,
            projector,
            hidden_size: decoder.hidden_size,
            pads_to_square: aspect.pads_to_square,
            pinpoints: aspect.pinpoints,
        };
        fields.finish(ignored)?;
        // HuatuoGPT-Vision (`cli.py`).
        let is_huatuo = kind == "llava_qwen2";
        Ok(Self {
            layout: CheckpointLayout::Llava,
            decoder,
            vision: Some(vision),
            default_chat_template: if is_huatuo {
                "huatuo"
            } else {
                family.default_chat_template()
            },
            model_type: kind,
        })
    }

    /// Parses the transformers layouts `llava` (`configuration_llava.py`) and `llava_next`: one
    /// nested configuration per part.
    fn parse_transformers(
        kind: String,
        mut fields: ConfigFields,
        ignored: &[String],
    ) -> Result<Self> {
        let mut text = fields.take_object("text_config")?.context("text_config is missing")?;
        let model_type: String = text.take_or("model_type", "llama".to_owned())?;
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
        })
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
        let pinpoints = if tiled {
            fields.expect_value("use_image_newline_parameter", true)?;
            let default = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];
            Some(fields.take_or("image_grid_pinpoints", default.to_vec())?)
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
            pinpoints,
        })
    }
}

/// Treatment of non-square images in LLaVA's own code (`process_images` in its `mm_utils.py`).
struct AspectRatioMode {
    pads_to_square: bool,
    pinpoints: Option<Vec<[usize; 2]>>,
}

impl AspectRatioMode {
    fn from_fields(fields: &mut ConfigFields) -> Result<Self> {
        let aspect: String = fields.take_or("image_aspect_ratio", "square".to_owned())?;
        if aspect != "anyres" {
            fields.expect_value("mm_patch_merge_type", "flat")?;
        }
        let pinpoints = match aspect.as_str() {
            "pad" | "square" => None,
            "anyres" => {
                let merge: String = fields.take_or("mm_patch_merge_type", "flat".to_owned())?;
                if merge != "spatial_unpad" {
                    bail!(
                        "mm_patch_merge_type is `{merge}`, expected spatial_unpad for \
                         image_aspect_ratio anyres"
                    );
                }
                Some(parse_pinpoints(fields.require("image_grid_pinpoints")?)?)
            }
            other => {
                bail!("image_aspect_ratio is `{other}`, only pad, square and anyres are supported")
            }
        };
        Ok(Self { pads_to_square: aspect == "pad", pinpoints })
    }
}

/// Parses candidate resolutions to (height, width). LLaVA's own code stores (width, height), as a
/// JSON list or as a string with a Python list of tuples.
fn parse_pinpoints(value: Value) -> Result<Vec<[usize; 2]>> {
    let excerpt = value.to_string();
    let list = match value {
        Value::String(text) => {
            let text = text.replace('(', "[").replace(')', "]");
            serde_json::from_str(&text)
        }
        list => serde_json::from_value(list),
    };
    let list: Vec<[usize; 2]> = list.with_context(|| {
        let excerpt: String = excerpt.chars().take(60).collect();
        format!("image_grid_pinpoints is {excerpt}, expected a list of widths and heights")
    })?;
    Ok(list.into_iter().map(|[w, h]| [h, w]).collect())
}

fn parse_selection(select_layer: i64, feature: &str) -> Result<Selection> {
    let select_feature = match feature {
        "patch" => SelectFeature::Patch,
        "cls_patch" => SelectFeature::ClsPatch,
        other => bail!("mm_vision_select_feature is `{other}`, expected patch or cls_patch"),
    };
    Ok(Selection { select_layer, select_feature, post_norm: false })
}

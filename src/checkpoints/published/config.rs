//! Parser of `config.json`: the decoder, an optional vision tower, and the layout of tensor names.

use super::vision_part::VisionPart;
use acem3_experts::decoder::DecoderConfig;
use acem3_projector::ProjectorKind;
use acem3_vision::{SelectFeature, Selection};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::decoder::{DecoderFamily, decoder};
use super::vision;
use crate::checkpoints::published::config_fields::ConfigFields;
use crate::checkpoints::published::tensor_names::CheckpointLayout;

/// A checkpoint's configuration.
#[derive(Clone, Debug)]
pub(super) struct CheckpointConfig {
    /// Its `model_type`.
    pub kind: String,
    /// Layout of the tensor names.
    pub layout: CheckpointLayout,
    /// Decoder configuration.
    pub decoder: DecoderConfig,
    /// Vision configuration; `None` for a text-only model.
    pub eyes: Option<VisionPart>,
    /// Default chat template of the model type.
    pub dialogue: &'static str,
}

impl CheckpointConfig {
    /// Parses a configuration. `ignored`: unknown fields that do not affect the computation.
    pub(super) fn parse(map: Map<String, Value>, ignored: &[String]) -> Result<Self> {
        let mut fields = ConfigFields::new("", map);
        fields.only("quantization_config", Value::Null)?;
        let kind: String = fields.need("model_type")?;
        match kind.as_str() {
            "llava_llama" => Self::original(kind, fields, DecoderFamily::Llama, ignored),
            "llava_mistral" => Self::original(kind, fields, DecoderFamily::Mistral, ignored),
            // LLaVA before 1.1, and models trained with its code.
            "llava" if !fields.has("text_config") => {
                Self::original(kind, fields, DecoderFamily::Llama, ignored)
            }
            "llava" | "llava_next" => Self::hub(kind, fields, ignored),
            // A language model trained with LLaVA's code keeps its type and has a projector.
            other if fields.has("mm_vision_tower") => {
                let family = DecoderFamily::of(other)?;
                Self::original(kind, fields, family, ignored)
            }
            other => {
                let family = DecoderFamily::of(other)?;
                let decoder = decoder(&mut fields, family)?;
                fields.finish(ignored)?;
                Ok(Self {
                    kind,
                    layout: CheckpointLayout::Plain,
                    decoder,
                    eyes: None,
                    dialogue: "plain",
                })
            }
        }
    }

    /// Parses the layout of LLaVA's own code (`llava_arch.py`): a language model's configuration with
    /// `mm_` fields.
    fn original(
        kind: String,
        mut fields: ConfigFields,
        family: DecoderFamily,
        ignored: &[String],
    ) -> Result<Self> {
        let decoder = decoder(&mut fields, family)?;
        for (name, value) in [("mm_use_im_start_end", false), ("mm_resampler", false)] {
            fields.only(name, value)?;
        }
        let aspect = AspectRatioMode::of_fields(&mut fields)?;
        let tower: Option<String> = fields.take("mm_vision_tower")?;
        let older: Option<String> = fields.take("vision_tower")?;
        let projector = match fields.take::<String>("mm_projector_type")?.as_deref() {
            None | Some("linear") => ProjectorKind::Linear,
            Some("mlp2x_gelu") => ProjectorKind::Mlp2xGelu,
            Some(other) => {
                bail!("mm_projector_type is `{other}`, only linear and mlp2x_gelu are supported")
            }
        };
        let select_feature = fields.or("mm_vision_select_feature", "patch".to_owned())?;
        if aspect.pinpoints.is_some() && select_feature != "patch" {
            bail!(
                "mm_vision_select_feature is `{select_feature}`, expected patch for images in tiles"
            );
        }
        let eyes = VisionPart {
            network: None,
            tower: Some(tower.or(older).context("mm_vision_tower is missing")?),
            selection: selection(fields.or("mm_vision_select_layer", -2)?, &select_feature)?,
            projector,
            hidden_size: decoder.hidden_size,
            pad: aspect.pad,
            pinpoints: aspect.pinpoints,
        };
        fields.finish(ignored)?;
        Ok(Self {
            kind,
            layout: CheckpointLayout::Original,
            decoder,
            eyes: Some(eyes),
            dialogue: family.dialogue(),
        })
    }

    /// Parses the transformers layouts `llava` (`configuration_llava.py`) and `llava_next`: one nested
    /// configuration per part.
    fn hub(kind: String, mut fields: ConfigFields, ignored: &[String]) -> Result<Self> {
        let mut text = fields
            .object("text_config")?
            .context("text_config is missing")?;
        let model_type: String = text.or("model_type", "llama".to_owned())?;
        let family = DecoderFamily::of(&model_type).context("text_config")?;
        // The outer `tie_word_embeddings` applies to the complete model and takes precedence.
        let tied: Option<bool> = fields.take("tie_word_embeddings")?;
        // The outer `vocab_size` is the default of the inner one.
        let vocab: Option<usize> = fields.take("vocab_size")?;
        let sized = text.has("vocab_size");
        let mut decoder = decoder(&mut text, family).context("text_config")?;
        decoder.tie_word_embeddings = tied.unwrap_or(decoder.tie_word_embeddings);
        if let (false, Some(vocab)) = (sized, vocab) {
            decoder.vocab_size = vocab;
        }
        text.finish(ignored)?;
        let tiled = kind == "llava_next";
        let eyes = VisionPart::of_parts(&mut fields, decoder.hidden_size, tiled, ignored)?;
        fields.finish(ignored)?;
        Ok(Self {
            kind,
            layout: CheckpointLayout::Hub,
            decoder,
            eyes: Some(eyes),
            dialogue: family.dialogue(),
        })
    }
}

impl VisionPart {
    /// Reads the vision part of `llava`, or of `llava_next` if `tiled`.
    fn of_parts(
        fields: &mut ConfigFields,
        hidden_size: usize,
        tiled: bool,
        ignored: &[String],
    ) -> Result<Self> {
        let part: Option<Value> = fields.take("vision_config")?;
        let network = vision::part(part.context("vision_config is missing")?, ignored)?;
        let strategy: String = fields.or("vision_feature_select_strategy", "default".to_owned())?;
        let class = network.config.form.class_token;
        let select_feature = match strategy.as_str() {
            // The reference would drop a patch.
            "default" if !class => bail!(
                "vision_feature_select_strategy is `default`, expected full: the vision tower has no \
                 class token to drop"
            ),
            // Rows of patches cannot contain a class token.
            "full" if class && tiled => bail!(
                "vision_feature_select_strategy is `full`, expected default with a class token"
            ),
            "default" => SelectFeature::Patch,
            "full" => SelectFeature::ClsPatch,
            other => bail!("vision_feature_select_strategy is `{other}`, expected default or full"),
        };
        fields.only("projector_hidden_act", "gelu")?;
        fields.only("multimodal_projector_bias", true)?;
        let pinpoints = if tiled {
            fields.only("use_image_newline_parameter", true)?;
            let default = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];
            Some(fields.or("image_grid_pinpoints", default.to_vec())?)
        } else {
            None
        };
        Ok(Self {
            network: Some(network),
            tower: None,
            selection: Selection {
                select_layer: fields.or("vision_feature_layer", -2)?,
                select_feature,
                post_norm: false,
            },
            projector: ProjectorKind::Mlp2xGelu,
            hidden_size,
            pad: false,
            pinpoints,
        })
    }
}

/// Treatment of non-square images in LLaVA's own code (`process_images` in its `mm_utils.py`).
struct AspectRatioMode {
    pad: bool,
    pinpoints: Option<Vec<[usize; 2]>>,
}

impl AspectRatioMode {
    fn of_fields(fields: &mut ConfigFields) -> Result<Self> {
        let aspect: String = fields.or("image_aspect_ratio", "square".to_owned())?;
        if aspect != "anyres" {
            fields.only("mm_patch_merge_type", "flat")?;
        }
        let pinpoints = match aspect.as_str() {
            "pad" | "square" => None,
            "anyres" => {
                let merge: String = fields.or("mm_patch_merge_type", "flat".to_owned())?;
                if merge != "spatial_unpad" {
                    bail!(
                        "mm_patch_merge_type is `{merge}`, expected spatial_unpad for \
                         image_aspect_ratio anyres"
                    );
                }
                Some(pinpoints(fields.need("image_grid_pinpoints")?)?)
            }
            other => {
                bail!("image_aspect_ratio is `{other}`, only pad, square and anyres are supported")
            }
        };
        Ok(Self {
            pad: aspect == "pad",
            pinpoints,
        })
    }
}

/// Parses candidate resolutions to (height, width). LLaVA's own code stores (width, height), as a JSON
/// list or as a string with a Python list of tuples.
fn pinpoints(said: Value) -> Result<Vec<[usize; 2]>> {
    let shown = said.to_string();
    let list = match said {
        Value::String(text) => {
            let text = text.replace('(', "[").replace(')', "]");
            serde_json::from_str(&text)
        }
        list => serde_json::from_value(list),
    };
    let list: Vec<[usize; 2]> = list.with_context(|| {
        let shown: String = shown.chars().take(60).collect();
        format!("image_grid_pinpoints is {shown}, expected a list of widths and heights")
    })?;
    Ok(list.into_iter().map(|[w, h]| [h, w]).collect())
}

fn selection(select_layer: i64, feature: &str) -> Result<Selection> {
    let select_feature = match feature {
        "patch" => SelectFeature::Patch,
        "cls_patch" => SelectFeature::ClsPatch,
        other => bail!("mm_vision_select_feature is `{other}`, expected patch or cls_patch"),
    };
    Ok(Selection {
        select_layer,
        select_feature,
        post_norm: false,
    })
}

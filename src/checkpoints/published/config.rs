//! What a `config.json` describes: a decoder, with eyes or without, and how its tensors are named.

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
    /// How its tensors are named.
    pub layout: CheckpointLayout,
    /// Its decoder.
    pub decoder: DecoderConfig,
    /// Its eyes, where it has any.
    pub eyes: Option<VisionPart>,
    /// The name of the dialogue that models of its kind are spoken to in.
    pub dialogue: &'static str,
}

impl CheckpointConfig {
    /// Reads a configuration. `ignored`: fields that are known to change nothing.
    pub(super) fn parse(map: Map<String, Value>, ignored: &[String]) -> Result<Self> {
        let mut fields = ConfigFields::new("", map);
        fields.only("quantization_config", Value::Null)?;
        let kind: String = fields.need("model_type")?;
        match kind.as_str() {
            "llava_llama" => Self::original(kind, fields, DecoderFamily::Llama, ignored),
            "llava_mistral" => Self::original(kind, fields, DecoderFamily::Mistral, ignored),
            // LLaVA before 1.1, and what was trained with its code.
            "llava" if !fields.has("text_config") => {
                Self::original(kind, fields, DecoderFamily::Llama, ignored)
            }
            "llava" | "llava_next" => Self::hub(kind, fields, ignored),
            // A plain model that LLaVA's code was trained on keeps its type and has a projector.
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

    /// LLaVA's own code (`llava_arch.py`): a language model's configuration with `mm_` fields.
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
                "mm_vision_select_feature is `{select_feature}`, expected patch where images are seen in tiles"
            );
        }
        let eyes = VisionPart {
            network: None,
            tower: Some(
                tower
                    .or(older)
                    .context("mm_vision_tower is missing, and with it the eyes")?,
            ),
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

    /// The hub's `llava` (`configuration_llava.py`) and `llava_next`: a configuration for each part.
    fn hub(kind: String, mut fields: ConfigFields, ignored: &[String]) -> Result<Self> {
        let mut text = fields.object("text_config")?.context("no text_config")?;
        let model_type: String = text.or("model_type", "llama".to_owned())?;
        let family = DecoderFamily::of(&model_type).context("text_config")?;
        // The outer switch is that of the whole model (`tie_word_embeddings` of its own class).
        let tied: Option<bool> = fields.take("tie_word_embeddings")?;
        // What the outer part says counts where the inner part says nothing.
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
    /// The eyes of the hub's `llava`, or, `tiled`, of its `llava_next`.
    fn of_parts(
        fields: &mut ConfigFields,
        hidden_size: usize,
        tiled: bool,
        ignored: &[String],
    ) -> Result<Self> {
        let part: Option<Value> = fields.take("vision_config")?;
        let network = vision::part(part.context("no vision_config")?, ignored)?;
        let strategy: String = fields.or("vision_feature_select_strategy", "default".to_owned())?;
        let class = network.config.form.class_token;
        let select_feature = match strategy.as_str() {
            // The reference would leave out a patch.
            "default" if !class => bail!(
                "vision_feature_select_strategy is `default`, expected full: its vision tower has no \
                 class token to leave out"
            ),
            // A class token has no place in a row of patches.
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

/// How LLaVA's own code shows an oblong image to its tower (`process_images` in its `mm_utils.py`).
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
                        "mm_patch_merge_type is `{merge}`, only spatial_unpad is supported where \
                         image_aspect_ratio is anyres"
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

/// Heights and widths. LLaVA's own code has widths and heights, as a list or written down as Python
/// writes one.
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

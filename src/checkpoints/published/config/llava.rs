//! Configuration of LLaVA's own code.

use acem3_experts::prompt::ImageMarkers;
use acem3_projector::ProjectorKind;
use acem3_vision::{SelectFeature, Selection, Tiling};
use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::CheckpointConfig;
use crate::checkpoints::published::config_fields::ConfigFields;
use crate::checkpoints::published::decoder::{DecoderFamily, parse_decoder};
use crate::checkpoints::published::tensor_names::CheckpointLayout;
use crate::checkpoints::published::vision_part::VisionPart;

impl CheckpointConfig {
    /// Parses the layout of LLaVA's own code (`llava_arch.py`): a language model's configuration
    /// with `mm_` fields.
    pub(super) fn parse_llava(
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
        if aspect.tiling.is_some() && select_feature != "patch" {
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
            tiling: aspect.tiling,
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
            image_markers: ImageMarkers::default(),
            model_type: kind,
        })
    }
}

/// Treatment of non-square images in LLaVA's own code (`process_images` in its `mm_utils.py`).
struct AspectRatioMode {
    pads_to_square: bool,
    tiling: Option<Tiling>,
}

impl AspectRatioMode {
    fn from_fields(fields: &mut ConfigFields) -> Result<Self> {
        let aspect: String = fields.take_or("image_aspect_ratio", "square".to_owned())?;
        if aspect != "anyres" {
            fields.expect_value("mm_patch_merge_type", "flat")?;
        }
        let tiling = match aspect.as_str() {
            "pad" | "square" => None,
            "anyres" => {
                let merge: String = fields.take_or("mm_patch_merge_type", "flat".to_owned())?;
                if merge != "spatial_unpad" {
                    bail!(
                        "mm_patch_merge_type is `{merge}`, expected spatial_unpad for \
                         image_aspect_ratio anyres"
                    );
                }
                let pinpoints = fields.require("image_grid_pinpoints")?;
                Some(Tiling::Pinpoints(parse_pinpoints(pinpoints)?))
            }
            other => {
                bail!("image_aspect_ratio is `{other}`, only pad, square and anyres are supported")
            }
        };
        Ok(Self { pads_to_square: aspect == "pad", tiling })
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

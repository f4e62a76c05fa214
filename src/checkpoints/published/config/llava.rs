//! Configuration of LLaVA's own code.

use acem3_experts::prompt::ImageMarkers;
use acem3_projector::ProjectorKind;
use acem3_vision::{AnyResMax, RegionRounding, Resolutions, SelectFeature, Selection, Tiling};
use anyhow::{Context, Result, bail};

use super::CheckpointConfig;
use super::resolutions::{parse_max_tiles, parse_resolutions};
use crate::checkpoints::published::config_fields::{ConfigFields, unsupported};
use crate::checkpoints::published::decoder::{DecoderFamily, parse_decoder};
use crate::checkpoints::published::tensor_names::CheckpointLayout;
use crate::checkpoints::published::vision_part::VisionPart;

/// The vision tower of HuatuoGPT-Vision, inside the checkpoint. Its 34B model has the `model_type` of
/// LLaVA 1.5, but the dialogue of the 7B model (`cli.py`).
const HUATUO_TOWER: &str = "./vit/clip_vit_large_patch14_336";

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
                return Err(unsupported(
                    &format!(
                        "mm_projector_type is `{other}`, only linear and mlp2x_gelu are supported"
                    ),
                    "use a checkpoint with another projector",
                ));
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
        let is_huatuo = kind == "llava_qwen2" || vision.tower_name.as_deref() == Some(HUATUO_TOWER);
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
        let max_tiles = parse_max_tiles("image_aspect_ratio", &aspect)?;
        if aspect != "anyres" && max_tiles.is_none() {
            fields.expect_value("mm_patch_merge_type", "flat")?;
        }
        let tiling = match (aspect.as_str(), max_tiles) {
            ("pad" | "square", _) => None,
            ("anyres", _) => match parse_tiles(fields, &aspect)? {
                Resolutions::Pixels(pinpoints) => Some(Tiling::Pinpoints(pinpoints)),
                Resolutions::Tiles(_) => bail!(
                    "image_grid_pinpoints is a range of tiles, which is supported with \
                     image_aspect_ratio anyres_max_N only\n\
                     hint: list widths and heights in pixels"
                ),
            },
            (_, Some(max_tiles)) => Some(Tiling::AnyResMax(AnyResMax {
                resolutions: parse_tiles(fields, &aspect)?,
                max_tiles,
                rounding: RegionRounding::Down,
            })),
            (other, None) => {
                return Err(unsupported(
                    &format!(
                        "image_aspect_ratio is `{other}`, only pad, square, anyres and anyres_max_N \
                         are supported"
                    ),
                    "use another checkpoint",
                ));
            }
        };
        Ok(Self { pads_to_square: aspect == "pad", tiling })
    }
}

/// Reads the settings of images in tiles. `aspect`: the value of `image_aspect_ratio`.
fn parse_tiles(fields: &mut ConfigFields, aspect: &str) -> Result<Resolutions> {
    let merge: String = fields.take_or("mm_patch_merge_type", "flat".to_owned())?;
    if merge != "spatial_unpad" {
        bail!(
            "mm_patch_merge_type is `{merge}`, expected spatial_unpad for image_aspect_ratio \
             {aspect}"
        );
    }
    parse_resolutions(fields.require("image_grid_pinpoints")?)
}

fn parse_selection(select_layer: i64, feature: &str) -> Result<Selection> {
    let select_feature = match feature {
        "patch" => SelectFeature::Patch,
        "cls_patch" => SelectFeature::ClsPatch,
        other => bail!("mm_vision_select_feature is `{other}`, expected patch or cls_patch"),
    };
    Ok(Selection { select_layer, select_feature, post_norm: false })
}

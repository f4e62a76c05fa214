//! Differences between published vision transformers.

use serde::{Deserialize, Serialize};

/// Optional parts of a vision transformer. The default is CLIP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the parts are independent of each other"
)]
pub struct Form {
    /// A learned token before the patches (all but `SigLIP`).
    pub class_token: bool,
    /// A bias of the patch embedding (all but CLIP).
    pub patch_bias: bool,
    /// A layer norm before the first block (CLIP).
    pub pre_norm: bool,
    /// Whether the layer norm after the last block is required; if false, it is loaded if present.
    pub post_norm: bool,
    /// Queries, keys and values come from one matrix (`timm`, `open_clip`).
    pub fused_qkv: bool,
    /// The outputs of attention and MLP are scaled by a learned factor per channel (`DINOv2`; Touvron et al.
    /// 2021, "`LayerScale`").
    pub layer_scale: bool,
    /// Side of the stored grid of positions where it is not that of the patches, to which it is then
    /// interpolated (`DINOv2`).
    pub position_grid: Option<usize>,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            class_token: true,
            patch_bias: false,
            pre_norm: true,
            post_norm: false,
            fused_qkv: false,
            layer_scale: false,
            position_grid: None,
        }
    }
}

impl Form {
    /// Returns true for CLIP's form, which files omit.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// CLIP as its publishers release it, norm after the last block included.
    pub fn clip() -> Self {
        Self {
            post_norm: true,
            ..Self::default()
        }
    }

    /// `SigLIP`: no class token, no norm before the blocks.
    pub fn siglip() -> Self {
        Self {
            class_token: false,
            patch_bias: true,
            pre_norm: false,
            ..Self::clip()
        }
    }

    /// `timm`'s plain vision transformer, which `BiomedCLIP` is.
    pub fn timm() -> Self {
        Self {
            patch_bias: true,
            pre_norm: false,
            fused_qkv: true,
            ..Self::clip()
        }
    }

    /// `DINOv2`.
    pub fn dinov2() -> Self {
        Self {
            patch_bias: true,
            pre_norm: false,
            layer_scale: true,
            ..Self::clip()
        }
    }
}

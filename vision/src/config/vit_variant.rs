//! Variants of published vision transformers.

use serde::{Deserialize, Serialize};

/// Optional parts of a vision transformer. The default is CLIP with an optional norm after the last
/// block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the parts are independent of each other")]
pub struct VitVariant {
    /// A learned token comes before the patches (all except `SigLIP`).
    pub class_token: bool,
    /// The patch embedding has a bias (all except CLIP).
    pub patch_bias: bool,
    /// A layer norm comes before the first block (CLIP).
    pub pre_norm: bool,
    /// The layer norm after the last block is required. If false, it is loaded if present.
    pub post_norm: bool,
    /// One matrix projects to queries, keys and values (`timm`, `open_clip`).
    pub fused_qkv: bool,
    /// Learned factors, one per channel, scale the outputs of attention and MLP (`DINOv2`,
    /// `InternViT`; `LayerScale` of Touvron et al. 2021).
    pub layer_scale: bool,
    /// Side of the stored grid of position embeddings if it differs from the grid of patches. The
    /// encoder then interpolates the embeddings (`DINOv2`).
    pub position_grid: Option<usize>,
}

impl Default for VitVariant {
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

impl VitVariant {
    /// Returns true for the default, which files omit.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the variant of published CLIP checkpoints, which have the norm after the last block.
    pub fn clip() -> Self {
        Self { post_norm: true, ..Self::default() }
    }

    /// Returns the variant of `SigLIP`: no class token, and no norm before the first block.
    pub fn siglip() -> Self {
        Self { class_token: false, patch_bias: true, pre_norm: false, ..Self::clip() }
    }

    /// Returns the variant of plain vision transformers in `timm`, for example `BiomedCLIP`.
    pub fn timm() -> Self {
        Self { patch_bias: true, pre_norm: false, fused_qkv: true, ..Self::clip() }
    }

    /// Returns the variant of `DINOv2`.
    pub fn dinov2() -> Self {
        Self { patch_bias: true, pre_norm: false, layer_scale: true, ..Self::clip() }
    }

    /// Returns the variant of `InternViT` in `InternVL`, which has no norm after the last block.
    pub fn intern_vit() -> Self {
        Self { post_norm: false, ..Self::dinov2() }
    }
}

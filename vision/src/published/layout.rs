//! Tensor naming schemes of published encoders.

use serde::{Deserialize, Serialize};

/// Tensor naming scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `transformers`' CLIP.
    Clip,
    /// `transformers`' `SigLIP`.
    Siglip,
    /// `transformers`' `DINOv2`.
    Dinov2,
    /// `open_clip`'s own vision transformer.
    OpenClip,
    /// A vision transformer of `timm` inside `open_clip`.
    OpenClipTimm,
}

/// The names of one layout. Pairs are the file's name (or its beginning) and ours.
pub(super) struct Names {
    /// The file's name of the patch embedding; what comes before it is where the encoder lies.
    pub(super) anchor: &'static str,
    /// Outside the blocks.
    pub(super) outside: &'static [(&'static str, &'static str)],
    /// What comes before a block's number.
    pub(super) blocks: &'static str,
    /// Inside a block, after its number.
    pub(super) inside: &'static [(&'static str, &'static str)],
    /// Beginnings of names beside the tower's that patch features do not need: buffers, heads.
    pub(super) unused: &'static [&'static str],
    /// Beginnings of names, from the start of the file's name, of the model's other parts.
    pub(super) others: &'static [&'static str],
}

/// What comes before a block's number in our names.
pub(super) const BLOCKS: &str = "encoder.layers.";

const MLP: [(&str, &str); 2] = [("mlp.fc1.", "mlp.fc1."), ("mlp.fc2.", "mlp.fc2.")];

const CLIP: Names = Names {
    anchor: "embeddings.patch_embedding.weight",
    outside: &[
        ("embeddings.class_embedding", "embeddings.class_embedding"),
        ("embeddings.patch_embedding.", "embeddings.patch_embedding."),
        (
            "embeddings.position_embedding.",
            "embeddings.position_embedding.",
        ),
        ("pre_layrnorm.", "pre_layrnorm."),
        ("post_layernorm.", "post_layernorm."),
    ],
    blocks: BLOCKS,
    inside: &[
        ("layer_norm1.", "layer_norm1."),
        ("self_attn.", "self_attn."),
        ("layer_norm2.", "layer_norm2."),
        MLP[0],
        MLP[1],
    ],
    unused: &["embeddings.position_ids"],
    others: &[
        "text_model.",
        "visual_projection.",
        "text_projection.",
        "logit_scale",
    ],
};

/// Its attention pool (`head.`) makes one vector of the patch features, which are wanted themselves.
const SIGLIP: Names = Names {
    unused: &["embeddings.position_ids", "head."],
    others: &["text_model.", "logit_scale", "logit_bias"],
    ..CLIP
};

const DINOV2: Names = Names {
    anchor: "embeddings.patch_embeddings.projection.weight",
    outside: &[
        ("embeddings.cls_token", "embeddings.class_embedding"),
        (
            "embeddings.patch_embeddings.projection.",
            "embeddings.patch_embedding.",
        ),
        (
            "embeddings.position_embeddings",
            "embeddings.position_embedding.weight",
        ),
        ("layernorm.", "post_layernorm."),
    ],
    blocks: "encoder.layer.",
    inside: &[
        ("norm1.", "layer_norm1."),
        ("attention.attention.query.", "self_attn.q_proj."),
        ("attention.attention.key.", "self_attn.k_proj."),
        ("attention.attention.value.", "self_attn.v_proj."),
        ("attention.output.dense.", "self_attn.out_proj."),
        // As `transformers` 5 calls the same.
        ("attention.q_proj.", "self_attn.q_proj."),
        ("attention.k_proj.", "self_attn.k_proj."),
        ("attention.v_proj.", "self_attn.v_proj."),
        ("attention.o_proj.", "self_attn.out_proj."),
        ("layer_scale1.lambda1", "layer_scale1"),
        ("norm2.", "layer_norm2."),
        MLP[0],
        MLP[1],
        ("layer_scale2.lambda1", "layer_scale2"),
    ],
    unused: &["embeddings.mask_token"],
    others: &["classifier."],
};

const OPEN_CLIP: Names = Names {
    anchor: "conv1.weight",
    outside: &[
        ("class_embedding", "embeddings.class_embedding"),
        ("conv1.", "embeddings.patch_embedding."),
        (
            "positional_embedding",
            "embeddings.position_embedding.weight",
        ),
        ("ln_pre.", "pre_layrnorm."),
        ("ln_post.", "post_layernorm."),
    ],
    blocks: "transformer.resblocks.",
    inside: &[
        ("ln_1.", "layer_norm1."),
        ("attn.in_proj_", "self_attn.qkv_proj."),
        ("attn.out_proj.", "self_attn.out_proj."),
        ("ls_1.gamma", "layer_scale1"),
        ("ln_2.", "layer_norm2."),
        ("mlp.c_fc.", "mlp.fc1."),
        ("mlp.c_proj.", "mlp.fc2."),
        ("ls_2.gamma", "layer_scale2"),
    ],
    unused: &["proj"],
    others: &[
        "transformer.",
        "token_embedding.",
        "positional_embedding",
        "ln_final.",
        "text_projection",
        "text.",
        "attn_mask",
        "logit_scale",
        "logit_bias",
    ],
};

const TIMM: Names = Names {
    anchor: "patch_embed.proj.weight",
    outside: &[
        ("cls_token", "embeddings.class_embedding"),
        ("patch_embed.proj.", "embeddings.patch_embedding."),
        ("pos_embed", "embeddings.position_embedding.weight"),
        ("norm.", "post_layernorm."),
    ],
    blocks: "blocks.",
    inside: &[
        ("norm1.", "layer_norm1."),
        ("attn.qkv.", "self_attn.qkv_proj."),
        ("attn.proj.", "self_attn.out_proj."),
        ("norm2.", "layer_norm2."),
        MLP[0],
        MLP[1],
    ],
    unused: &["head."],
    others: &["visual.head.", "text.", "logit_scale", "logit_bias"],
};

impl Layout {
    /// The table of names.
    pub(super) fn names(self) -> &'static Names {
        match self {
            Self::Clip => &CLIP,
            Self::Siglip => &SIGLIP,
            Self::Dinov2 => &DINOV2,
            Self::OpenClip => &OPEN_CLIP,
            Self::OpenClipTimm => &TIMM,
        }
    }

    /// Names of the weight files of a repository in this layout, the one to prefer first.
    pub fn files(self) -> [&'static str; 2] {
        match self {
            Self::Clip | Self::Siglip | Self::Dinov2 => ["model.safetensors", "pytorch_model.bin"],
            Self::OpenClip | Self::OpenClipTimm => {
                ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"]
            }
        }
    }
}

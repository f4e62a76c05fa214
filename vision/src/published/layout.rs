//! Tensor names in the layouts of published encoders.

use serde::{Deserialize, Serialize};

/// Tensor naming scheme of published encoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderLayout {
    /// CLIP of `transformers`.
    Clip,
    /// `SigLIP` of `transformers`.
    Siglip,
    /// `DINOv2` of `transformers`.
    Dinov2,
    /// `InternViT` in `InternVL` of `transformers`.
    InternVl,
    /// `InternViT` in `InternVL`'s own code.
    InternVlChat,
    /// Vision transformer of `open_clip`.
    OpenClip,
    /// Vision transformer of `timm` inside `open_clip`.
    OpenClipTimm,
}

/// Tensor names of a layout. Pairs are a name or prefix in the file and the corresponding acem3
/// name.
pub(super) struct LayoutNames {
    /// Name of the patch embedding. In a file, the text before it is the prefix of the encoder.
    pub(super) patch_embedding: &'static str,
    /// Names of tensors outside of the blocks.
    pub(super) outside_blocks: &'static [(&'static str, &'static str)],
    /// Prefix before the number of a block.
    pub(super) block_prefix: &'static str,
    /// Names of tensors in a block, after its number.
    pub(super) inside_block: &'static [(&'static str, &'static str)],
    /// Prefixes of tensors of the encoder that patch features do not need: buffers, heads.
    pub(super) unused_prefixes: &'static [&'static str],
    /// Prefixes of tensors of other parts of the model, from the start of the full name.
    pub(super) other_part_prefixes: &'static [&'static str],
}

/// Prefix before the number of a block in acem3 names.
pub(super) const BLOCK_PREFIX: &str = "encoder.layers.";

const MLP: [(&str, &str); 2] = [("mlp.fc1.", "mlp.fc1."), ("mlp.fc2.", "mlp.fc2.")];

const CLIP: LayoutNames = LayoutNames {
    patch_embedding: "embeddings.patch_embedding.weight",
    outside_blocks: &[
        ("embeddings.class_embedding", "embeddings.class_embedding"),
        ("embeddings.patch_embedding.", "embeddings.patch_embedding."),
        ("embeddings.position_embedding.", "embeddings.position_embedding."),
        ("pre_layrnorm.", "pre_layrnorm."),
        ("post_layernorm.", "post_layernorm."),
    ],
    block_prefix: BLOCK_PREFIX,
    inside_block: &[
        ("layer_norm1.", "layer_norm1."),
        ("self_attn.", "self_attn."),
        ("layer_norm2.", "layer_norm2."),
        MLP[0],
        MLP[1],
    ],
    unused_prefixes: &["embeddings.position_ids"],
    other_part_prefixes: &["text_model.", "visual_projection.", "text_projection.", "logit_scale"],
};

/// Drops the attention pool (`head.`), which reduces the patch features to one vector.
const SIGLIP: LayoutNames = LayoutNames {
    unused_prefixes: &["embeddings.position_ids", "head."],
    other_part_prefixes: &["text_model.", "logit_scale", "logit_bias"],
    ..CLIP
};

const DINOV2: LayoutNames = LayoutNames {
    patch_embedding: "embeddings.patch_embeddings.projection.weight",
    outside_blocks: &[
        ("embeddings.cls_token", "embeddings.class_embedding"),
        ("embeddings.patch_embeddings.projection.", "embeddings.patch_embedding."),
        ("embeddings.position_embeddings", "embeddings.position_embedding.weight"),
        ("layernorm.", "post_layernorm."),
    ],
    block_prefix: "encoder.layer.",
    inside_block: &[
        ("norm1.", "layer_norm1."),
        ("attention.attention.query.", "self_attn.q_proj."),
        ("attention.attention.key.", "self_attn.k_proj."),
        ("attention.attention.value.", "self_attn.v_proj."),
        ("attention.output.dense.", "self_attn.out_proj."),
        // Names of the same tensors in `transformers` 5.
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
    unused_prefixes: &["embeddings.mask_token"],
    other_part_prefixes: &["classifier."],
};

const INTERN_VL: LayoutNames = LayoutNames {
    patch_embedding: "embeddings.patch_embeddings.projection.weight",
    outside_blocks: &[
        ("embeddings.cls_token", "embeddings.class_embedding"),
        ("embeddings.patch_embeddings.projection.", "embeddings.patch_embedding."),
        ("embeddings.position_embeddings", "embeddings.position_embedding.weight"),
    ],
    block_prefix: "encoder.layer.",
    inside_block: &[
        ("layernorm_before.", "layer_norm1."),
        ("attention.q_proj.", "self_attn.q_proj."),
        ("attention.k_proj.", "self_attn.k_proj."),
        ("attention.v_proj.", "self_attn.v_proj."),
        ("attention.projection_layer.", "self_attn.out_proj."),
        ("lambda_1", "layer_scale1"),
        ("layernorm_after.", "layer_norm2."),
        MLP[0],
        MLP[1],
        ("lambda_2", "layer_scale2"),
    ],
    unused_prefixes: &["embeddings.mask_token"],
    other_part_prefixes: &[],
};

const INTERN_VL_CHAT: LayoutNames = LayoutNames {
    patch_embedding: "embeddings.patch_embedding.weight",
    outside_blocks: &[
        ("embeddings.class_embedding", "embeddings.class_embedding"),
        ("embeddings.patch_embedding.", "embeddings.patch_embedding."),
        ("embeddings.position_embedding", "embeddings.position_embedding.weight"),
    ],
    block_prefix: BLOCK_PREFIX,
    inside_block: &[
        ("norm1.", "layer_norm1."),
        ("attn.qkv.", "self_attn.qkv_proj."),
        ("attn.proj.", "self_attn.out_proj."),
        ("ls1", "layer_scale1"),
        ("norm2.", "layer_norm2."),
        MLP[0],
        MLP[1],
        ("ls2", "layer_scale2"),
    ],
    unused_prefixes: &[],
    other_part_prefixes: &[],
};

const OPEN_CLIP: LayoutNames = LayoutNames {
    patch_embedding: "conv1.weight",
    outside_blocks: &[
        ("class_embedding", "embeddings.class_embedding"),
        ("conv1.", "embeddings.patch_embedding."),
        ("positional_embedding", "embeddings.position_embedding.weight"),
        ("ln_pre.", "pre_layrnorm."),
        ("ln_post.", "post_layernorm."),
    ],
    block_prefix: "transformer.resblocks.",
    inside_block: &[
        ("ln_1.", "layer_norm1."),
        ("attn.in_proj_", "self_attn.qkv_proj."),
        ("attn.out_proj.", "self_attn.out_proj."),
        ("ls_1.gamma", "layer_scale1"),
        ("ln_2.", "layer_norm2."),
        ("mlp.c_fc.", "mlp.fc1."),
        ("mlp.c_proj.", "mlp.fc2."),
        ("ls_2.gamma", "layer_scale2"),
    ],
    unused_prefixes: &["proj"],
    other_part_prefixes: &[
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

const TIMM: LayoutNames = LayoutNames {
    patch_embedding: "patch_embed.proj.weight",
    outside_blocks: &[
        ("cls_token", "embeddings.class_embedding"),
        ("patch_embed.proj.", "embeddings.patch_embedding."),
        ("pos_embed", "embeddings.position_embedding.weight"),
        ("norm.", "post_layernorm."),
    ],
    block_prefix: "blocks.",
    inside_block: &[
        ("norm1.", "layer_norm1."),
        ("attn.qkv.", "self_attn.qkv_proj."),
        ("attn.proj.", "self_attn.out_proj."),
        ("norm2.", "layer_norm2."),
        MLP[0],
        MLP[1],
    ],
    unused_prefixes: &["head."],
    other_part_prefixes: &["visual.head.", "text.", "logit_scale", "logit_bias"],
};

impl EncoderLayout {
    /// Returns the tensor names of the layout.
    pub(super) fn names(self) -> &'static LayoutNames {
        match self {
            Self::Clip => &CLIP,
            Self::Siglip => &SIGLIP,
            Self::Dinov2 => &DINOV2,
            Self::InternVl => &INTERN_VL,
            Self::InternVlChat => &INTERN_VL_CHAT,
            Self::OpenClip => &OPEN_CLIP,
            Self::OpenClipTimm => &TIMM,
        }
    }

    /// Returns the names of the weight files in repositories of this layout, preferred file first.
    pub fn weight_files(self) -> [&'static str; 2] {
        match self {
            Self::Clip | Self::Siglip | Self::Dinov2 | Self::InternVl | Self::InternVlChat => {
                ["model.safetensors", "pytorch_model.bin"]
            }
            Self::OpenClip | Self::OpenClipTimm => {
                ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"]
            }
        }
    }
}

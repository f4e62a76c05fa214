//! Mapping of tensor names of `InternVL` to the names that the crates load.

use acem3_vision::published::TensorRole;
use acem3_vision::{EncoderLayout, TensorRenaming};

use super::model_names::{PROJECTOR_PREFIX, TOWER_PREFIX, language_model_name};

/// Maps a name of transformers' `InternVLForConditionalGeneration`, all versions. Returns `None` for
/// tensors that no feature needs. An unknown tensor keeps its name.
pub(super) fn transformers_name(name: &str) -> Option<String> {
    let inner = name.strip_prefix("model.").unwrap_or(name);
    if let Some(rest) = inner.strip_prefix("vision_tower.") {
        return tower_name(EncoderLayout::InternVl, name, rest);
    }
    let projector_parts = [("layer_norm.", "0."), ("linear_1.", "1."), ("linear_2.", "3.")];
    let projector = inner.strip_prefix("multi_modal_projector.").and_then(|rest| {
        projector_parts.iter().find_map(|(part, index)| {
            let parameter = rest.strip_prefix(part)?;
            Some(format!("{PROJECTOR_PREFIX}{index}{parameter}"))
        })
    });
    Some(projector.unwrap_or_else(|| language_model_name(inner, name)))
}

/// Maps a name of `InternVL`'s own code.
pub(super) fn own_name(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("vision_model.") {
        return tower_name(EncoderLayout::InternVlChat, name, rest);
    }
    if let Some(rest) = name.strip_prefix("mlp1.") {
        return Some(format!("{PROJECTOR_PREFIX}{rest}"));
    }
    Some(name.strip_prefix("language_model.").unwrap_or(name).to_owned())
}

/// Maps the name of a tensor of the tower. `rest`: the name without the prefix of the tower.
fn tower_name(layout: EncoderLayout, name: &str, rest: &str) -> Option<String> {
    match TensorRenaming::with_prefix(layout, "").role(rest) {
        TensorRole::Encoder(model_name) => Some(format!("{TOWER_PREFIX}{model_name}")),
        TensorRole::Unused => None,
        TensorRole::Unknown => Some(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_layouts_map_to_the_same_tensors() {
        let rows = [
            (
                Some("model.vision_tower.encoder.layer.1.layernorm_before.bias"),
                "vision_model.encoder.layers.1.norm1.bias",
                "model.vision_tower.vision_model.encoder.layers.1.layer_norm1.bias",
            ),
            (
                Some("vision_tower.embeddings.cls_token"),
                "vision_model.embeddings.class_embedding",
                "model.vision_tower.vision_model.embeddings.class_embedding",
            ),
            (
                None,
                "vision_model.encoder.layers.0.attn.qkv.weight",
                "model.vision_tower.vision_model.encoder.layers.0.self_attn.qkv_proj.weight",
            ),
            (
                Some("multi_modal_projector.layer_norm.weight"),
                "mlp1.0.weight",
                "model.mm_projector.0.weight",
            ),
            (
                Some("model.multi_modal_projector.linear_2.bias"),
                "mlp1.3.bias",
                "model.mm_projector.3.bias",
            ),
            (
                Some("model.language_model.layers.0.mlp.up_proj.weight"),
                "language_model.model.layers.0.mlp.up_proj.weight",
                "model.layers.0.mlp.up_proj.weight",
            ),
            (
                Some("language_model.lm_head.weight"),
                "language_model.lm_head.weight",
                "lm_head.weight",
            ),
        ];
        for (transformers, own, expected) in rows {
            assert_eq!(own_name(own).as_deref(), Some(expected));
            if let Some(name) = transformers {
                assert_eq!(transformers_name(name).as_deref(), Some(expected));
            }
        }
        let unknown = "vision_model.encoder.layers.0.attn.q_norm.weight";
        assert_eq!(own_name(unknown).as_deref(), Some(unknown));
        assert_eq!(transformers_name("model.vision_tower.embeddings.mask_token"), None);
    }
}

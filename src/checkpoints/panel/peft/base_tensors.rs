//! Tensors of the base, with the names of `LlavaForConditionalGeneration` on the hub.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use candle::{DType, Tensor};

use super::adapted_panel::AdaptedPanel;
use crate::checkpoints::store::encoding::TensorEncoding;
use crate::checkpoints::store::tensor_store::StoredTensor;

/// Names of parts of a panel, and the names of these parts on the hub.
const PARTS: [(&str, &str); 5] = [
    ("model.vision_tower.", "vision_tower."),
    ("model.mm_projector.0.", "multi_modal_projector.linear_1."),
    ("model.mm_projector.2.", "multi_modal_projector.linear_2."),
    ("model.", "language_model.model."),
    ("lm_head.", "language_model.lm_head."),
];
/// Prefix of the layers of a vision tower.
const TOWER_LAYERS: &str = "model.vision_tower.vision_model.encoder.layers.";
/// Tables with one row per token.
const TOKEN_TABLES: [&str; 2] = ["model.embed_tokens.weight", "lm_head.weight"];
/// Prefix of the norm after the last layer of the tower, on the hub.
const POST_NORM: &str = "vision_tower.vision_model.post_layernorm";

/// Returns the name of a tensor on the hub.
fn hub_name(name: &str) -> String {
    let part = PARTS.iter().find_map(|(part, hub)| Some((hub, name.strip_prefix(part)?)));
    part.map_or_else(|| name.to_owned(), |(hub, rest)| format!("{hub}{rest}"))
}

/// Returns the values of a tensor in the element type of its file.
fn file_values(stored: &StoredTensor) -> Result<Tensor> {
    let dtype = match stored.identity.encoding {
        TensorEncoding::Plain(dtype @ (DType::F16 | DType::BF16)) => dtype,
        _ => DType::F32,
    };
    Ok(stored.values.to_dtype(dtype)?)
}

/// Returns the tensors of the base by name. The tables of tokens get rows of zeros up to `vocabulary`.
pub(super) fn base_tensors(
    panel: &AdaptedPanel,
    vocabulary: usize,
) -> Result<BTreeMap<String, Tensor>> {
    let mut tensors = BTreeMap::new();
    for (name, stored) in panel.base()? {
        let mut values = file_values(stored).with_context(|| name.clone())?;
        if TOKEN_TABLES.contains(&name.as_str()) {
            let rows = values.dim(0)?;
            values = values.pad_with_zeros(0, 0, vocabulary.saturating_sub(rows))?.contiguous()?;
        }
        tensors.insert(hub_name(name), values);
    }
    // The features come from a layer before this norm; transformers expects it nevertheless.
    let any_norm = tensors.iter().find(|(name, _)| name.ends_with("layer_norm1.bias"));
    if let Some(bias) = any_norm.map(|(_, bias)| bias.zeros_like()).transpose()? {
        let weight = bias.ones_like()?;
        tensors.entry(format!("{POST_NORM}.weight")).or_insert(weight);
        tensors.entry(format!("{POST_NORM}.bias")).or_insert(bias);
    }
    Ok(tensors)
}

/// Returns the number of layers of the vision tower that the panel has: those after the selected one
/// may be missing.
pub(super) fn tower_layers(panel: &AdaptedPanel) -> Result<usize> {
    let indices = panel.base()?.filter_map(|(name, _)| {
        let (index, _) = name.strip_prefix(TOWER_LAYERS)?.split_once('.')?;
        index.parse::<usize>().ok()
    });
    Ok(indices.max().map_or(0, |last| last + 1))
}

/// Returns the name of the element type of the base in `config.json`.
pub(super) fn dtype_name(panel: &AdaptedPanel) -> Result<&'static str> {
    let mut base = panel.base()?;
    let embedding = base.find(|(name, _)| name.as_str() == TOKEN_TABLES[0]);
    let (_, stored) = embedding.context("no token embedding")?;
    Ok(match stored.identity.encoding {
        TensorEncoding::Plain(DType::F16) => "float16",
        TensorEncoding::Plain(DType::BF16) => "bfloat16",
        _ => "float32",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_hub() {
        for (name, expected) in [
            (
                "model.layers.1.self_attn.q_proj.weight",
                "language_model.model.layers.1.self_attn.q_proj.weight",
            ),
            ("model.norm.weight", "language_model.model.norm.weight"),
            ("lm_head.weight", "language_model.lm_head.weight"),
            ("model.mm_projector.2.bias", "multi_modal_projector.linear_2.bias"),
            (
                "model.vision_tower.vision_model.pre_layrnorm.bias",
                "vision_tower.vision_model.pre_layrnorm.bias",
            ),
        ] {
            assert_eq!(hub_name(name), expected);
        }
    }
}

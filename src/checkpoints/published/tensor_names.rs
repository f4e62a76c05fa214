//! Mapping of tensor names in published checkpoints to the names that the crates load.

use acem3_vision::TensorRenaming;
use acem3_vision::published::TensorRole;
use anyhow::{Result, bail};

use super::intern_vl_names;
use super::model_names::{
    EMBEDDING_TENSOR, NEWLINE_TENSOR, OUTPUT_TENSOR, PROJECTOR_PREFIX, TOWER_PREFIX,
    is_image_tensor, language_model_name,
};
use crate::checkpoints::store::weight_files::Checkpoint;

/// Layout of tensor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointLayout {
    /// A text-only model in transformers.
    Plain,
    /// LLaVA's own code: the language model's names, plus the projector and often the vision tower.
    Llava,
    /// transformers' `LlavaForConditionalGeneration`, `LlavaNextForConditionalGeneration` and
    /// `LlavaOnevisionForConditionalGeneration`, all versions.
    Transformers,
    /// transformers' `Gemma3ForConditionalGeneration`, all versions.
    Gemma3,
    /// transformers' `InternVLForConditionalGeneration`.
    InternVl,
    /// `InternVL`'s own code.
    InternVlChat,
}

impl CheckpointLayout {
    /// Maps the name of a tensor. An unknown tensor keeps its name, and loading reports it as
    /// unused. Returns `None` for tensors that no feature needs, and for vision tensors if
    /// `text_only`.
    pub(super) fn rename(self, name: &str, text_only: bool) -> Option<String> {
        let model_name = match self {
            Self::Plain => name.to_owned(),
            Self::Llava => llava_tensor_name(name),
            Self::Transformers => transformers_tensor_name(name),
            Self::Gemma3 => gemma_tensor_name(name),
            Self::InternVl => intern_vl_names::transformers_name(name)?,
            Self::InternVlChat => intern_vl_names::own_name(name)?,
        };
        (!(text_only && is_image_tensor(&model_name))).then_some(model_name)
    }
}

fn llava_tensor_name(name: &str) -> String {
    let tower = name.strip_prefix("model.vision_tower.vision_tower.");
    tower.map_or_else(|| name.to_owned(), tower_tensor_name)
}

/// Maps a name of the transformers layouts. Before version 4.52 the parts have no prefix; since
/// then they are under `model.`. Checkpoints use either.
fn transformers_tensor_name(name: &str) -> String {
    let inner = name.strip_prefix("model.").unwrap_or(name);
    if let Some(rest) = inner.strip_prefix("vision_tower.") {
        return tower_tensor_name(rest);
    }
    if let Some(rest) = inner.strip_prefix("multi_modal_projector.linear_1.") {
        return format!("{PROJECTOR_PREFIX}0.{rest}");
    }
    if let Some(rest) = inner.strip_prefix("multi_modal_projector.linear_2.") {
        return format!("{PROJECTOR_PREFIX}2.{rest}");
    }
    if inner == "image_newline" {
        return NEWLINE_TENSOR.to_owned();
    }
    language_model_name(inner, name)
}

/// Maps a name of Gemma 3. Its projector has other tensors than that of LLaVA.
fn gemma_tensor_name(name: &str) -> String {
    let inner = name.strip_prefix("model.").unwrap_or(name);
    match inner.strip_prefix("multi_modal_projector.") {
        Some(rest) => format!("{PROJECTOR_PREFIX}{rest}"),
        None => transformers_tensor_name(name),
    }
}

fn tower_tensor_name(rest: &str) -> String {
    let rest = rest.strip_prefix("vision_model.").unwrap_or(rest);
    format!("{TOWER_PREFIX}{rest}")
}

/// Maps the name of a tensor of a separately published tower (complete CLIP or vision part).
/// Returns `None` for tensors that no feature needs. An unknown tensor keeps its name.
pub(super) fn separate_tower_tensor_name(renaming: &TensorRenaming, name: &str) -> Option<String> {
    match renaming.role(name) {
        TensorRole::Encoder(model_name) => Some(format!("{TOWER_PREFIX}{model_name}")),
        TensorRole::Unused => None,
        TensorRole::Unknown => Some(name.to_owned()),
    }
}

/// Removes the tensors of a checkpoint's own tower that no feature needs, such as a pooling head.
pub(super) fn remove_unused_tower_tensors(
    weights: &mut Checkpoint,
    layout: acem3_vision::EncoderLayout,
) {
    let names = weights.tensors.keys().map(String::as_str);
    // A missing patch embedding is reported when the tower is loaded.
    let tower_names = names.filter(|name| name.starts_with(TOWER_PREFIX));
    if let Ok(renaming) = TensorRenaming::find(layout, tower_names) {
        weights.tensors.retain(|name, _| {
            !name.starts_with(TOWER_PREFIX) || renaming.role(name) != TensorRole::Unused
        });
    }
}

/// Removes leading dimensions of 1 from the tables of the vision tower's embeddings, which `InternVL`
/// stores for a batch of one image.
pub(super) fn remove_leading_dimensions(weights: &mut Checkpoint) -> Result<()> {
    for (table, rank) in [("class_embedding", 1), ("position_embedding.weight", 2)] {
        let name = format!("{TOWER_PREFIX}embeddings.{table}");
        let Some(stored) = weights.tensors.get_mut(&name) else {
            continue;
        };
        while stored.values.rank() > rank && stored.values.dim(0)? == 1 {
            stored.values = stored.values.squeeze(0)?;
        }
    }
    Ok(())
}

/// Removes the output layer if it is tied.
///
/// # Errors
/// If a stored output layer differs from the embedding.
pub(super) fn remove_tied_output(weights: &mut Checkpoint, tied: bool) -> Result<()> {
    if !tied {
        return Ok(());
    }
    let Some(output) = weights.tensors.remove(OUTPUT_TENSOR) else {
        return Ok(());
    };
    let embedding = weights.tensors.get(EMBEDDING_TENSOR);
    if embedding.is_none_or(|embedding| embedding.identity != output.identity) {
        bail!(
            "{}: tensor `{OUTPUT_TENSOR}` differs from the embedding, but the configuration sets \
             tie_word_embeddings",
            output.file
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_names_map_to_the_same_tensor() {
        let pairs = [
            (
                "language_model.model.layers.0.mlp.up_proj.weight",
                "model.layers.0.mlp.up_proj.weight",
            ),
            (
                "model.language_model.layers.0.mlp.up_proj.weight",
                "model.layers.0.mlp.up_proj.weight",
            ),
            ("language_model.lm_head.weight", "lm_head.weight"),
            ("lm_head.weight", "lm_head.weight"),
            ("multi_modal_projector.linear_1.bias", "model.mm_projector.0.bias"),
            ("model.multi_modal_projector.linear_2.weight", "model.mm_projector.2.weight"),
            (
                "vision_tower.vision_model.pre_layrnorm.bias",
                "model.vision_tower.vision_model.pre_layrnorm.bias",
            ),
            (
                "model.vision_tower.pre_layrnorm.bias",
                "model.vision_tower.vision_model.pre_layrnorm.bias",
            ),
            ("image_newline", "model.image_newline"),
            ("model.image_newline", "model.image_newline"),
        ];
        for (published_name, model_name) in pairs {
            assert_eq!(
                CheckpointLayout::Transformers.rename(published_name, false).as_deref(),
                Some(model_name)
            );
        }
        let projector = "model.multi_modal_projector.mm_soft_emb_norm.weight";
        assert_eq!(
            CheckpointLayout::Gemma3.rename(projector, false).as_deref(),
            Some("model.mm_projector.mm_soft_emb_norm.weight")
        );
        let tower = "model.vision_tower.vision_tower.vision_model.embeddings.class_embedding";
        assert_eq!(
            CheckpointLayout::Llava.rename(tower, false).as_deref(),
            Some("model.vision_tower.vision_model.embeddings.class_embedding")
        );
        assert_eq!(CheckpointLayout::Llava.rename(tower, true), None);
        let names = ["vision_model.embeddings.patch_embedding.weight"];
        let renaming = TensorRenaming::find(acem3_vision::EncoderLayout::Siglip, names).unwrap();
        let name = |name| separate_tower_tensor_name(&renaming, name);
        assert_eq!(name("text_model.embeddings.token_embedding.weight"), None);
        assert_eq!(name("vision_model.head.probe"), None);
        assert_eq!(name("other.bias").as_deref(), Some("other.bias"));
        assert_eq!(
            name("vision_model.encoder.layers.0.mlp.fc1.bias").as_deref(),
            Some("model.vision_tower.vision_model.encoder.layers.0.mlp.fc1.bias")
        );
    }
}

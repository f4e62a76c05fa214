//! Mapping of tensor names in published checkpoints to the names that the crates load.

use acem3_vision::Renaming;
use acem3_vision::published::Place;
use anyhow::{Result, bail};

use crate::checkpoints::store::weight_files::Checkpoint;

/// Prefix of the vision tower's tensors.
pub(super) const TOWER: &str = "model.vision_tower.vision_model.";
const PROJECTOR: &str = "model.mm_projector.";
/// The token that ends a row of patches, for images in tiles.
const NEWLINE: &str = "model.image_newline";
const EMBEDDING: &str = "model.embed_tokens.weight";
const OUTPUT: &str = "lm_head.weight";

/// Layout of tensor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointLayout {
    /// A text-only model in transformers.
    Plain,
    /// LLaVA's own code: the language model's names, plus the projector and often the vision tower.
    Original,
    /// transformers' `LlavaForConditionalGeneration` and `LlavaNextForConditionalGeneration`, all versions.
    Hub,
}

impl CheckpointLayout {
    /// Maps the name of a tensor. An unknown tensor keeps its name, and loading reports it as unused.
    /// Returns `None` for vision tensors if `text_only`.
    pub(super) fn rename(self, name: &str, text_only: bool) -> Option<String> {
        let ours = match self {
            Self::Plain => name.to_owned(),
            Self::Original => original(name),
            Self::Hub => hub(name),
        };
        let sees = ours.starts_with("model.vision_tower.")
            || ours.starts_with(PROJECTOR)
            || ours == NEWLINE;
        (!(text_only && sees)).then_some(ours)
    }
}

fn original(name: &str) -> String {
    let tower = name.strip_prefix("model.vision_tower.vision_tower.");
    tower.map_or_else(|| name.to_owned(), in_tower)
}

/// Maps a name of the transformers layouts. Before version 4.52 the parts have no prefix; since then
/// they are under `model.`. Checkpoints use either.
fn hub(name: &str) -> String {
    let inner = name.strip_prefix("model.").unwrap_or(name);
    if let Some(rest) = inner.strip_prefix("vision_tower.") {
        return in_tower(rest);
    }
    if let Some(rest) = inner.strip_prefix("multi_modal_projector.linear_1.") {
        return format!("{PROJECTOR}0.{rest}");
    }
    if let Some(rest) = inner.strip_prefix("multi_modal_projector.linear_2.") {
        return format!("{PROJECTOR}2.{rest}");
    }
    if inner == "image_newline" {
        return NEWLINE.to_owned();
    }
    match inner.strip_prefix("language_model.") {
        Some(rest) if rest == OUTPUT => rest.to_owned(),
        Some(rest) if rest.starts_with("model.") => rest.to_owned(),
        Some(rest) => format!("model.{rest}"),
        None => name.to_owned(),
    }
}

fn in_tower(rest: &str) -> String {
    let rest = rest.strip_prefix("vision_model.").unwrap_or(rest);
    format!("{TOWER}{rest}")
}

/// Maps the name of a tensor of a separately published tower (complete CLIP or vision part). Returns
/// `None` for tensors that no feature needs. An unknown tensor keeps its name.
pub(super) fn tower_name(renaming: &Renaming, name: &str) -> Option<String> {
    match renaming.place(name) {
        Place::Encoder(ours) => Some(format!("{TOWER}{ours}")),
        Place::Unused => None,
        Place::Unknown => Some(name.to_owned()),
    }
}

/// Removes the tensors of a checkpoint's own tower that no feature needs, such as a pooling head.
pub(super) fn drop_unused(weights: &mut Checkpoint, layout: acem3_vision::Layout) {
    let names = weights.tensors.keys().map(String::as_str);
    // A missing patch embedding is reported when the tower is loaded.
    let own = names.filter(|name| name.starts_with(TOWER));
    if let Ok(renaming) = Renaming::find(layout, own) {
        weights
            .tensors
            .retain(|name, _| !name.starts_with(TOWER) || renaming.place(name) != Place::Unused);
    }
}

/// Removes the output layer if it is tied.
///
/// # Errors
/// If a stored output layer differs from the embedding.
pub(super) fn drop_tied(weights: &mut Checkpoint, tied: bool) -> Result<()> {
    if !tied {
        return Ok(());
    }
    let Some(output) = weights.tensors.remove(OUTPUT) else {
        return Ok(());
    };
    let embedding = weights.tensors.get(EMBEDDING);
    if embedding.is_none_or(|embedding| embedding.identity != output.identity) {
        bail!(
            "{}: tensor `{OUTPUT}` differs from the embedding, but the configuration sets \
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
            (
                "multi_modal_projector.linear_1.bias",
                "model.mm_projector.0.bias",
            ),
            (
                "model.multi_modal_projector.linear_2.weight",
                "model.mm_projector.2.weight",
            ),
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
        for (theirs, ours) in pairs {
            assert_eq!(
                CheckpointLayout::Hub.rename(theirs, false).as_deref(),
                Some(ours)
            );
        }
        let tower = "model.vision_tower.vision_tower.vision_model.embeddings.class_embedding";
        assert_eq!(
            CheckpointLayout::Original.rename(tower, false).as_deref(),
            Some("model.vision_tower.vision_model.embeddings.class_embedding")
        );
        assert_eq!(CheckpointLayout::Original.rename(tower, true), None);
        let names = ["vision_model.embeddings.patch_embedding.weight"];
        let renaming = Renaming::find(acem3_vision::Layout::Siglip, names).unwrap();
        let name = |name| tower_name(&renaming, name);
        assert_eq!(name("text_model.embeddings.token_embedding.weight"), None);
        assert_eq!(name("vision_model.head.probe"), None);
        assert_eq!(name("other.bias").as_deref(), Some("other.bias"));
        assert_eq!(
            name("vision_model.encoder.layers.0.mlp.fc1.bias").as_deref(),
            Some("model.vision_tower.vision_model.encoder.layers.0.mlp.fc1.bias")
        );
    }
}

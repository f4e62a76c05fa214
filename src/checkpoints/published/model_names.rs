//! Names of tensors that the crates load.

/// Prefix of the vision tower's tensors.
pub(super) const TOWER_PREFIX: &str = "model.vision_tower.vision_model.";
/// Prefix of the projector's tensors.
pub(super) const PROJECTOR_PREFIX: &str = "model.mm_projector.";
/// Embedding of the token that ends a row of patches, for images in tiles.
pub(super) const NEWLINE_TENSOR: &str = "model.image_newline";
/// Weights of the token embeddings.
pub(super) const EMBEDDING_TENSOR: &str = "model.embed_tokens.weight";
/// Weights of the output layer.
pub(super) const OUTPUT_TENSOR: &str = "lm_head.weight";

/// Returns true for a tensor of the vision tower or the projector, or the embedding of a row's end.
pub(super) fn is_image_tensor(name: &str) -> bool {
    name.starts_with("model.vision_tower.")
        || name.starts_with(PROJECTOR_PREFIX)
        || name == NEWLINE_TENSOR
}

/// Maps the name of a tensor of the language model in the transformers layouts. `inner`: the name
/// without the prefix of the complete model. An unknown tensor keeps its name.
pub(super) fn language_model_name(inner: &str, name: &str) -> String {
    match inner.strip_prefix("language_model.") {
        Some(rest) if rest == OUTPUT_TENSOR => rest.to_owned(),
        Some(rest) if rest.starts_with("model.") => rest.to_owned(),
        Some(rest) => format!("model.{rest}"),
        None => name.to_owned(),
    }
}

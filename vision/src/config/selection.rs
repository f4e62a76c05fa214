//! Selection of the hidden state and the tokens that are an encoder's features.

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, to_signed};

/// Tokens of the selected hidden state that are features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectFeature {
    /// The patches only (`LLaVA`).
    Patch,
    /// The class token, if there is one, then the patches.
    ClsPatch,
}

/// Hidden state and tokens that are the encoder's output (`mm_vision_select_layer` and `…_feature`
/// of `LLaVA`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selection {
    /// Index into Hugging Face's tuple of hidden states, which starts with the embeddings. A
    /// negative index counts from the end: −1 is the output of the last block, −2 the output of the
    /// block before it.
    pub select_layer: i64,
    /// Tokens of that state.
    pub select_feature: SelectFeature,
    /// True if the norm after the last block is applied to the features. The `last_hidden_state` of
    /// `SigLIP` and `DINOv2` includes this norm, their hidden states do not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub post_norm: bool,
}

impl Selection {
    /// Returns the index of the selected state in an encoder with `layers` blocks: 0 for the
    /// embeddings, `layers` for the last state. The index is also the number of blocks to run.
    pub fn state_index(self, layers: usize) -> Result<usize, ConfigError> {
        let index = if self.select_layer < 0 {
            to_signed(layers).saturating_add(1).saturating_add(self.select_layer)
        } else {
            self.select_layer
        };
        usize::try_from(index)
            .ok()
            .filter(|index| *index <= layers)
            .ok_or(ConfigError::MissingLayer { select_layer: self.select_layer, layers })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::config) fn select(select_layer: i64) -> Selection {
        Selection { select_layer, select_feature: SelectFeature::Patch, post_norm: false }
    }

    #[test]
    fn negative_layers_count_from_the_last_state() {
        let index = |select_layer| select(select_layer).state_index(3);
        assert_eq!(index(-1), Ok(3));
        assert_eq!(index(-2), Ok(2));
        assert_eq!(index(-4), Ok(0));
        assert_eq!(index(0), Ok(0));
        assert_eq!(index(3), Ok(3));
        for wrong in [4, -5, i64::MIN, i64::MAX] {
            let error = index(wrong).unwrap_err();
            assert!(error.to_string().contains("expected -4 to 3"), "{error}");
        }
    }
}

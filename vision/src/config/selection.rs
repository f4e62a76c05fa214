//! Selection of the hidden state and tokens that are an encoder's features.

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, signed};

/// Which tokens of the selected hidden state are features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectFeature {
    /// The patches only (`LLaVA`).
    Patch,
    /// The class token, if there is one, then the patches.
    ClsPatch,
}

/// Which hidden state of the encoder is its output (`LLaVA`'s `mm_vision_select_layer` and `…_feature`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selection {
    /// Index into Hugging Face's tuple of hidden states, in which the embeddings come first. A negative
    /// index counts from its end: −1 is the output of the last block, −2 that of the block before.
    pub select_layer: i64,
    /// Which tokens of that state.
    pub select_feature: SelectFeature,
    /// Whether they pass through the norm after the last block (`last_hidden_state` of `SigLIP` and
    /// `DINOv2`, whose hidden states precede that norm).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub post_norm: bool,
}

impl Selection {
    /// The index of the selected state in an encoder of `layers` blocks, which is also the number of blocks to run:
    /// 0 for the embeddings, `layers` for the last state.
    pub fn state(self, layers: usize) -> Result<usize, ConfigError> {
        let state = if self.select_layer < 0 {
            signed(layers)
                .saturating_add(1)
                .saturating_add(self.select_layer)
        } else {
            self.select_layer
        };
        usize::try_from(state)
            .ok()
            .filter(|state| *state <= layers)
            .ok_or(ConfigError::Layer {
                select: self.select_layer,
                layers,
            })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::config) fn select(select_layer: i64) -> Selection {
        Selection {
            select_layer,
            select_feature: SelectFeature::Patch,
            post_norm: false,
        }
    }

    #[test]
    fn negative_layers_count_from_the_end_of_the_tuple() {
        let state = |n| select(n).state(3);
        assert_eq!(state(-1), Ok(3));
        assert_eq!(state(-2), Ok(2));
        assert_eq!(state(-4), Ok(0));
        assert_eq!(state(0), Ok(0));
        assert_eq!(state(3), Ok(3));
        for wrong in [4, -5, i64::MIN, i64::MAX] {
            let error = state(wrong).unwrap_err();
            assert!(error.to_string().contains("expected -4 to 3"), "{error}");
        }
    }
}

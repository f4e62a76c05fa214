//! Vision tower: a vision transformer and the selection of its output features.

use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use crate::config::{SelectFeature, Selection, VisionConfig};
use crate::vit::Vit;

/// Maps images to patch features.
#[derive(Clone, Debug)]
pub struct VisionTower {
    vit: Vit,
    config: VisionConfig,
    selection: Selection,
    /// Index of the selected hidden state, which is also the number of blocks to run.
    state_index: usize,
}

impl VisionTower {
    /// Loads the encoder under `vb` (see [`Vit::load`]). Returns an error if the selected layer or
    /// norm does not exist.
    pub fn load(vb: &VarBuilder, config: &VisionConfig, selection: Selection) -> Result<Self> {
        let state_index =
            selection.state_index(config.num_hidden_layers).map_err(candle::Error::wrap)?;
        let vit = Vit::load(vb, config)?;
        if selection.post_norm && !vit.has_post_norm() {
            candle::bail!(
                "vision selection: `post_norm` is true, \
                 but the encoder has no norm after its last block\n\
                 hint: remove `post_norm`"
            );
        }
        Ok(Self { vit, config: config.clone(), selection, state_index })
    }

    /// Computes the patch features of images. Differentiable. Blocks after the selected hidden
    /// state do not run.
    ///
    /// # Shapes
    /// pixel values (b, 3, s, s) → (b, p, `c_v`) with `p` from [`Self::token_count`].
    pub fn forward(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let state = self.vit.hidden_state(pixel_values, self.state_index)?;
        let state =
            if self.selection.post_norm { self.vit.apply_post_norm(&state)? } else { state };
        let class_tokens = self.config.class_token_count();
        match self.selection.select_feature {
            SelectFeature::Patch if class_tokens > 0 => {
                state.narrow(1, class_tokens, self.token_count())?.contiguous()
            }
            SelectFeature::Patch | SelectFeature::ClsPatch => Ok(state),
        }
    }

    /// Returns the number of features `p` per image.
    pub fn token_count(&self) -> usize {
        self.config.token_count(self.selection)
    }

    /// Returns the width `c_v` of a feature.
    pub fn hidden_size(&self) -> usize {
        self.config.hidden_size
    }

    /// Returns the encoder's configuration.
    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// Returns the selection of the output: a hidden state and some of its tokens.
    pub fn selection(&self) -> Selection {
        self.selection
    }

    /// Returns the encoder, for access to every hidden state.
    pub fn vit(&self) -> &Vit {
        &self.vit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{tiny, tiny_pixels};
    use candle::{DType, Device, IndexOp};
    use candle_nn::VarMap;

    #[test]
    fn features_are_the_selected_tokens_of_the_selected_state() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let pixels = tiny_pixels(2);
        let flat = |t: Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for (select_layer, state) in [(-1, 3), (-2, 2), (0, 0)] {
            let selection =
                Selection { select_layer, select_feature: SelectFeature::Patch, post_norm: false };
            let tower = VisionTower::load(&vb, &tiny(), selection).unwrap();
            let features = tower.forward(&pixels).unwrap();
            assert_eq!(features.dims(), [2, tower.token_count(), tower.hidden_size()]);
            let states = tower.vit().hidden_states(&pixels, state).unwrap();
            assert_eq!(flat(features), flat(states[state].i((.., 1..)).unwrap()));
            let selection = Selection { select_feature: SelectFeature::ClsPatch, ..selection };
            let tower = VisionTower::load(&vb, &tiny(), selection).unwrap();
            assert_eq!(flat(tower.forward(&pixels).unwrap()), flat(states[state].clone()));
        }
    }

    #[test]
    fn selection_of_missing_layer_is_an_error() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let selection =
            Selection { select_layer: 4, select_feature: SelectFeature::Patch, post_norm: false };
        let error = VisionTower::load(&vb, &tiny(), selection).unwrap_err().to_string();
        assert!(error.contains("`select_layer` is 4, expected -4 to 3"), "{error}");
    }
}

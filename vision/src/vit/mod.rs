//! Vision transformer (Dosovitskiy et al. 2021) in the variants of
//! [`VitVariant`](crate::config::VitVariant). Tensors have the names of Hugging Face's
//! `CLIPVisionModel`. Tensors of other layouts are renamed when their files are read (see
//! [`crate::published`]).

mod attention;
mod block;
mod embeddings;
mod linear;
mod position;
mod tensors;

use acem3_kernels::LayerNorm;
use candle::{IndexOp, Result, Tensor};
use candle_nn::VarBuilder;

use crate::config::VisionConfig;
use block::VitBlock;
use embeddings::Embeddings;

/// A vision transformer: patch embeddings, blocks, and optional norms before and after the blocks.
#[derive(Clone, Debug)]
pub struct Vit {
    embeddings: Embeddings,
    pre_norm: Option<LayerNorm>,
    blocks: Vec<VitBlock>,
    post_norm: Option<LayerNorm>,
}

impl Vit {
    /// Loads the encoder from `embeddings.…`, `encoder.layers.N.…` and, depending on the variant,
    /// `pre_layrnorm.…` (checkpoints have this spelling) and `post_layernorm.…`.
    pub fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        config.validate().map_err(candle::Error::wrap)?;
        let (c, eps) = (config.hidden_size, config.layer_norm_eps);
        let layers = vb.pp("encoder.layers");
        let blocks = (0..config.num_hidden_layers)
            .map(|i| VitBlock::load(&layers.pp(i), config))
            .collect::<Result<Vec<_>>>()?;
        let post = vb.pp("post_layernorm");
        let post_norm = if config.variant.post_norm || post.contains_tensor("weight") {
            Some(LayerNorm::load(&post, c, eps)?)
        } else {
            None
        };
        let pre_norm = if config.variant.pre_norm {
            Some(LayerNorm::load(&vb.pp("pre_layrnorm"), c, eps)?)
        } else {
            None
        };
        Ok(Self {
            embeddings: Embeddings::load(&vb.pp("embeddings"), config)?,
            pre_norm,
            blocks,
            post_norm,
        })
    }

    /// Returns the number of blocks.
    pub fn layer_count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns true if there is a norm after the last block.
    pub fn has_post_norm(&self) -> bool {
        self.post_norm.is_some()
    }

    /// Computes the entries 0 to `last_state` of Hugging Face's `hidden_states`. State 0 is the
    /// embeddings after the optional norm, and state n is the output of block n. Later blocks do
    /// not run.
    ///
    /// # Shapes
    /// (b, 3, s, s) → `last_state + 1` × (b, t, `c_v`). The class token, if there is one, comes
    /// first.
    pub fn hidden_states(&self, pixel_values: &Tensor, last_state: usize) -> Result<Vec<Tensor>> {
        let mut x = self.embed(pixel_values)?;
        let mut states = vec![x.clone()];
        for block in self.first_blocks(last_state)? {
            x = block.forward(&x)?;
            states.push(x.clone());
        }
        Ok(states)
    }

    /// Computes the hidden state `state` without storing the states before it.
    ///
    /// # Shapes
    /// (b, 3, s, s) → (b, t, `c_v`).
    pub fn hidden_state(&self, pixel_values: &Tensor, state: usize) -> Result<Tensor> {
        let embedded = self.embed(pixel_values)?;
        self.first_blocks(state)?.iter().try_fold(embedded, |x, block| block.forward(&x))
    }

    /// Applies the norm after the last block to a state. Returns an error if the encoder has no
    /// such norm.
    ///
    /// # Shapes
    /// (…, `c_v`) → (…, `c_v`).
    pub fn apply_post_norm(&self, state: &Tensor) -> Result<Tensor> {
        match &self.post_norm {
            Some(norm) => norm.forward(state),
            None => candle::bail!("the encoder has no norm after its last block"),
        }
    }

    /// Returns the class token of the last hidden state after the norm (`pooler_output` of Hugging
    /// Face), or `None` if the encoder has no class token or no norm.
    ///
    /// # Shapes
    /// last hidden state (b, p + 1, `c_v`) → (b, `c_v`).
    pub fn pooled_output(&self, last: &Tensor) -> Result<Option<Tensor>> {
        self.post_norm
            .as_ref()
            .filter(|_| self.embeddings.has_class_token())
            .map(|norm| norm.forward(&last.i((.., 0))?))
            .transpose()
    }

    fn embed(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let embedded = self.embeddings.forward(pixel_values)?;
        match &self.pre_norm {
            Some(norm) => norm.forward(&embedded),
            None => Ok(embedded),
        }
    }

    fn first_blocks(&self, blocks: usize) -> Result<&[VitBlock]> {
        match self.blocks.get(..blocks) {
            Some(blocks) => Ok(blocks),
            None => candle::bail!(
                "hidden state {blocks} does not exist, expected at most {}",
                self.blocks.len()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::VitVariant;
    use crate::config::{tiny, tiny_pixels};
    use candle::{DType, Device};
    use candle_nn::VarMap;

    #[test]
    fn all_weights_get_gradients_in_all_variants() {
        let interpolated = VitVariant { position_grid: Some(3), ..VitVariant::dinov2() };
        for variant in
            [VitVariant::default(), VitVariant::siglip(), VitVariant::timm(), interpolated]
        {
            let map = VarMap::new();
            let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
            let config = VisionConfig { variant, ..tiny() };
            assert_all_weights_get_gradients(&map, &Vit::load(&vb, &config).unwrap(), &config);
        }
    }

    fn assert_all_weights_get_gradients(map: &VarMap, vit: &Vit, config: &VisionConfig) {
        for var in map.all_vars() {
            // Initial values away from zero, so that no gradient is zero by chance.
            let values = Tensor::arange(0f32, var.elem_count() as f32, &Device::Cpu).unwrap();
            let values = values.sin().unwrap().affine(0.4, 0.1).unwrap();
            var.set(&values.reshape(var.shape()).unwrap()).unwrap();
        }
        let pixels = tiny_pixels(2);
        let states = vit.hidden_states(&pixels, 3).unwrap();
        assert_eq!(states.len(), 4);
        assert_eq!(states[3].dims(), [2, config.sequence_length(), 8]);
        let last = if vit.has_post_norm() {
            vit.apply_post_norm(&states[3]).unwrap()
        } else {
            states[3].clone()
        };
        // The loss is weighted, because the squares of a normalised row sum to a constant.
        let weights = Tensor::arange(0f32, 8., &Device::Cpu).unwrap();
        let grads = last
            .broadcast_mul(&weights)
            .unwrap()
            .sqr()
            .unwrap()
            .sum_all()
            .unwrap()
            .backward()
            .unwrap();
        for (name, var) in map.data().lock().unwrap().iter() {
            let grad = grads.get(var).unwrap_or_else(|| panic!("{name} has no gradient"));
            let max = grad.abs().unwrap().flatten_all().unwrap().max(0).unwrap();
            let max = max.to_scalar::<f32>().unwrap();
            // Adding a vector to all keys does not change the softmax.
            assert!(max > 1e-6 || name.ends_with("k_proj.bias"), "{name}: {max}");
        }
        assert!(vit.hidden_states(&pixels, 4).is_err());
    }

    #[test]
    fn single_state_equals_entry_of_all_states_for_any_batch() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let vit = Vit::load(&vb, &tiny()).unwrap();
        let pixels = tiny_pixels(3);
        let states = vit.hidden_states(&pixels, 2).unwrap();
        let state = vit.hidden_state(&pixels, 2).unwrap();
        let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(flat(&states[2]), flat(&state));
        let single = vit.hidden_state(&pixels.narrow(0, 1, 1).unwrap(), 2).unwrap();
        for (a, b) in flat(&single).iter().zip(flat(&state.narrow(0, 1, 1).unwrap())) {
            assert!((a - b).abs() < 1e-5);
        }
    }
}

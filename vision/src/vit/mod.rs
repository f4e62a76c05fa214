//! The vision transformer (Dosovitskiy et al. 2021) in the forms that [`Form`](crate::config::Form) describes,
//! with the tensor names of Hugging Face's `CLIPVisionModel`. Other layouts are renamed to these when their
//! files are read (see [`crate::published`]).

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
use block::Block;
use embeddings::Embeddings;

/// A vision transformer: patch embeddings, a layer norm, and blocks.
#[derive(Clone, Debug)]
pub struct Vit {
    embeddings: Embeddings,
    pre_norm: Option<LayerNorm>,
    blocks: Vec<Block>,
    post_norm: Option<LayerNorm>,
}

impl Vit {
    /// Loads the encoder from the names `embeddings.…`, `pre_layrnorm.…` (so spelt in every checkpoint, and
    /// not in every form), `encoder.layers.N.…` and, where required or present, `post_layernorm.…`.
    pub fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        config.validate().map_err(candle::Error::wrap)?;
        let (c, eps) = (config.hidden_size, config.layer_norm_eps);
        let layers = vb.pp("encoder.layers");
        let blocks = (0..config.num_hidden_layers)
            .map(|i| Block::load(&layers.pp(i), config))
            .collect::<Result<Vec<_>>>()?;
        let post = vb.pp("post_layernorm");
        let post_norm = if config.form.post_norm || post.contains_tensor("weight") {
            Some(LayerNorm::load(&post, c, eps)?)
        } else {
            None
        };
        let pre_norm = if config.form.pre_norm {
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

    /// Number of blocks.
    pub fn layers(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is a norm after the last block.
    pub fn has_post_norm(&self) -> bool {
        self.post_norm.is_some()
    }

    /// The hidden states 0 (the embeddings, normed where the form has that) to `up_to` (the output of that many blocks), as in
    /// Hugging Face's tuple. Later blocks are not run.
    ///
    /// # Shapes
    /// (b, 3, s, s) → `up_to + 1` × (b, t, `c_v`); the class token, if there is one, comes first.
    pub fn hidden_states(&self, pixel_values: &Tensor, up_to: usize) -> Result<Vec<Tensor>> {
        let mut x = self.embed(pixel_values)?;
        let mut states = vec![x.clone()];
        for block in self.first(up_to)? {
            x = block.forward(&x)?;
            states.push(x.clone());
        }
        Ok(states)
    }

    /// The hidden state `state` alone, without keeping the ones before it.
    ///
    /// # Shapes
    /// (b, 3, s, s) → (b, t, `c_v`).
    pub fn hidden_state(&self, pixel_values: &Tensor, state: usize) -> Result<Tensor> {
        let embedded = self.embed(pixel_values)?;
        self.first(state)?
            .iter()
            .try_fold(embedded, |x, block| block.forward(&x))
    }

    /// A state after the norm that follows the last block. It is an error where there is none.
    ///
    /// # Shapes
    /// (…, `c_v`) → (…, `c_v`).
    pub fn normed(&self, state: &Tensor) -> Result<Tensor> {
        match &self.post_norm {
            Some(norm) => norm.forward(state),
            None => candle::bail!("the encoder has no norm after its last block"),
        }
    }

    /// The normed class token of the last hidden state (Hugging Face's `pooler_output`), where the
    /// checkpoint has both.
    ///
    /// # Shapes
    /// last hidden state (b, p + 1, `c_v`) → (b, `c_v`).
    pub fn pooled(&self, last: &Tensor) -> Result<Option<Tensor>> {
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

    fn first(&self, blocks: usize) -> Result<&[Block]> {
        match self.blocks.get(..blocks) {
            Some(blocks) => Ok(blocks),
            None => candle::bail!("hidden state {blocks} of {} blocks", self.blocks.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Form;
    use crate::config::tiny;
    use candle::{DType, Device};
    use candle_nn::VarMap;

    #[test]
    fn every_weight_gets_a_gradient_in_every_form() {
        let interpolated = Form {
            position_grid: Some(3),
            ..Form::dinov2()
        };
        for form in [Form::default(), Form::siglip(), Form::timm(), interpolated] {
            let map = VarMap::new();
            let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
            let config = VisionConfig { form, ..tiny() };
            gradients(&map, &Vit::load(&vb, &config).unwrap(), &config);
        }
    }

    fn gradients(map: &VarMap, vit: &Vit, config: &VisionConfig) {
        for var in map.all_vars() {
            // Away from zero, so that no gradient vanishes by chance of the initial value.
            var.set(&(var.randn_like(0., 0.3).unwrap() + 0.1).unwrap())
                .unwrap();
        }
        let pixels = Tensor::randn(0f32, 1., (2, 3, 10, 10), &Device::Cpu).unwrap();
        let states = vit.hidden_states(&pixels, 3).unwrap();
        assert_eq!(states.len(), 4);
        assert_eq!(states[3].dims(), [2, config.sequence(), 8]);
        let last = if vit.has_post_norm() {
            vit.normed(&states[3]).unwrap()
        } else {
            states[3].clone()
        };
        // Weighted, since the squares of a normed row sum to a constant.
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
            let grad = grads
                .get(var)
                .unwrap_or_else(|| panic!("{name} has no gradient"));
            let large = grad.abs().unwrap().flatten_all().unwrap().max(0).unwrap();
            let large = large.to_scalar::<f32>().unwrap();
            // Softmax does not see what is added to all keys alike.
            assert!(
                large > 1e-6 || name.ends_with("k_proj.bias"),
                "{name}: {large}"
            );
        }
        assert!(vit.hidden_states(&pixels, 4).is_err());
    }

    #[test]
    fn one_state_is_that_of_the_tuple_and_an_image_does_not_see_its_neighbours() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let vit = Vit::load(&vb, &tiny()).unwrap();
        let pixels = Tensor::randn(0f32, 1., (3, 3, 10, 10), &Device::Cpu).unwrap();
        let states = vit.hidden_states(&pixels, 2).unwrap();
        let state = vit.hidden_state(&pixels, 2).unwrap();
        let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(flat(&states[2]), flat(&state));
        let single = vit
            .hidden_state(&pixels.narrow(0, 1, 1).unwrap(), 2)
            .unwrap();
        for (a, b) in flat(&single)
            .iter()
            .zip(flat(&state.narrow(0, 1, 1).unwrap()))
        {
            assert!((a - b).abs() < 1e-5);
        }
    }
}

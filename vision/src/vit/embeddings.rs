//! Embedding layer: a linear map of each patch, an optional class token, and position embeddings.

use acem3_kernels::add_bias;
use candle::{Result, Tensor, bail};
use candle_nn::{Init, VarBuilder};

use super::position::Positions;
use crate::config::VisionConfig;

/// The embedding layer.
#[derive(Clone, Debug)]
pub(super) struct Embeddings {
    class_embedding: Option<Tensor>,
    patch_weight: Tensor,
    patch_bias: Option<Tensor>,
    positions: Positions,
    channels: usize,
    image_size: usize,
    patch_size: usize,
    grid_side: usize,
}

impl Embeddings {
    /// Loads `patch_embedding.weight`, `position_embedding.weight` and, if the variant has them,
    /// `class_embedding` and `patch_embedding.bias`.
    pub(super) fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        let (c, patch_size, channels) =
            (config.hidden_size, config.patch_size, config.num_channels);
        let init = Init::Randn { mean: 0., stdev: 0.02 };
        let class_embedding = if config.variant.class_token {
            Some(vb.get_with_hints(c, "class_embedding", init)?)
        } else {
            None
        };
        let shape = (c, channels, patch_size, patch_size);
        let patch_weight = vb.get_with_hints(shape, "patch_embedding.weight", init)?;
        let patch_bias = if config.variant.patch_bias {
            Some(vb.get_with_hints(c, "patch_embedding.bias", Init::Const(0.))?)
        } else {
            None
        };
        let shape = (config.position_count(), c);
        let position_table = vb.get_with_hints(shape, "position_embedding.weight", init)?;
        Ok(Self {
            class_embedding,
            patch_weight,
            patch_bias,
            positions: Positions::new(position_table, config)?,
            channels,
            image_size: config.image_size,
            patch_size,
            grid_side: config.grid_side(),
        })
    }

    pub(super) fn has_class_token(&self) -> bool {
        self.class_embedding.is_some()
    }

    /// Embeds images.
    ///
    /// # Shapes
    /// (b, 3, s, s) → (b, p + 1, c), or (b, p, c) without a class token.
    pub(super) fn forward(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let b = match *pixel_values.dims() {
            [b, channels, h, w]
                if (channels, h, w) == (self.channels, self.image_size, self.image_size) =>
            {
                b
            }
            ref found => bail!(
                "pixel values: expected (b, {}, {s}, {s}), found {found:?}",
                self.channels,
                s = self.image_size
            ),
        };
        let mut tokens = self.embed_patches(pixel_values)?; // (b, p, c)
        if let Some(class) = &self.class_embedding {
            let c = class.elem_count();
            let class = class.reshape((1, 1, c))?.broadcast_as((b, 1, c))?;
            tokens = Tensor::cat(&[&class, &tokens], 1)?;
        }
        let rows = tokens.reshape((b, ()))?;
        let position = self.positions.for_patch_grid()?.flatten_all()?;
        add_bias(&rows, &position)?.reshape(tokens.shape())
    }

    /// Computes the patch convolution, whose stride equals its kernel size, as one matrix product
    /// over the patches. This is faster than candle's convolution, forward and backward.
    fn embed_patches(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let (b, n) = (pixel_values.dim(0)?, self.grid_side);
        let used_side = n * self.patch_size;
        let patch_length = self.channels * self.patch_size * self.patch_size;
        let rows = pixel_values
            .narrow(2, 0, used_side)?
            .narrow(3, 0, used_side)?
            .reshape(&[b, self.channels, n, self.patch_size, n, self.patch_size][..])?
            .permute([0, 2, 4, 1, 3, 5])?
            .reshape((b * n * n, patch_length))?;
        let rows = rows.matmul(&self.patch_weight.reshape(((), patch_length))?.t()?)?;
        let rows = match &self.patch_bias {
            Some(bias) => add_bias(&rows, bias)?,
            None => rows,
        };
        rows.reshape((b, n * n, ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{tiny, tiny_pixels};
    use candle::{DType, Device};
    use candle_nn::VarMap;

    #[test]
    fn patch_embedding_equals_convolution() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let embeddings = Embeddings::load(&vb, &tiny()).unwrap();
        let pixels = tiny_pixels(2);
        let conv = pixels.conv2d(&embeddings.patch_weight, 0, 4, 1, 1).unwrap();
        let conv = conv.flatten_from(2).unwrap().transpose(1, 2).unwrap();
        let ours = embeddings.embed_patches(&pixels).unwrap();
        assert_eq!(ours.dims(), [2, 4, 8]);
        let difference =
            (ours - conv).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
        assert!(difference.to_scalar::<f32>().unwrap() < 1e-5);
    }

    #[test]
    fn image_of_wrong_size_is_an_error() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let embeddings = Embeddings::load(&vb, &tiny()).unwrap();
        let pixels = Tensor::zeros((2, 3, 10, 12), DType::F32, &Device::Cpu).unwrap();
        let error = embeddings.forward(&pixels).unwrap_err().to_string();
        assert!(error.contains("expected (b, 3, 10, 10), found [2, 3, 10, 12]"), "{error}");
    }
}

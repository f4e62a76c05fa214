//! Pixels to tokens: a linear map of each patch, in most forms a class token before them, and a position for
//! each.

use acem3_kernels::add_bias;
use candle::{Result, Tensor, bail};
use candle_nn::{Init, VarBuilder};

use super::position::Positions;
use crate::config::VisionConfig;

/// The input layer.
#[derive(Clone, Debug)]
pub(super) struct Embeddings {
    class: Option<Tensor>,
    patch: Tensor,
    patch_bias: Option<Tensor>,
    position: Positions,
    channels: usize,
    image: usize,
    side: usize,
    grid: usize,
}

impl Embeddings {
    /// Loads `patch_embedding.weight`, `position_embedding.weight` and, in the forms that have them,
    /// `class_embedding` and `patch_embedding.bias`.
    pub(super) fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        let (c, side, channels) = (config.hidden_size, config.patch_size, config.num_channels);
        let init = Init::Randn {
            mean: 0.,
            stdev: 0.02,
        };
        let patch = (c, channels, side, side);
        let class = if config.form.class_token {
            Some(vb.get_with_hints(c, "class_embedding", init)?)
        } else {
            None
        };
        let patch = vb.get_with_hints(patch, "patch_embedding.weight", init)?;
        let patch_bias = if config.form.patch_bias {
            Some(vb.get_with_hints(c, "patch_embedding.bias", Init::Const(0.))?)
        } else {
            None
        };
        let position = (config.positions(), c);
        let position = vb.get_with_hints(position, "position_embedding.weight", init)?;
        Ok(Self {
            class,
            patch,
            patch_bias,
            position: Positions::new(position, config)?,
            channels,
            image: config.image_size,
            side,
            grid: config.grid(),
        })
    }

    pub(super) fn has_class_token(&self) -> bool {
        self.class.is_some()
    }

    /// Embeds images.
    ///
    /// # Shapes
    /// (b, 3, s, s) → (b, p + 1, c), or (b, p, c) without a class token.
    pub(super) fn forward(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let b = match *pixel_values.dims() {
            [b, channels, h, w] if (channels, h, w) == (self.channels, self.image, self.image) => b,
            ref got => bail!(
                "pixel values: expected (b, {}, {s}, {s}), got {got:?}",
                self.channels,
                s = self.image
            ),
        };
        let mut tokens = self.patches(pixel_values)?; // (b, p, c)
        if let Some(class) = &self.class {
            let c = class.elem_count();
            let class = class.reshape((1, 1, c))?.broadcast_as((b, 1, c))?;
            tokens = Tensor::cat(&[&class, &tokens], 1)?;
        }
        let rows = tokens.reshape((b, ()))?;
        let position = self.position.table()?.flatten_all()?;
        add_bias(&rows, &position)?.reshape(tokens.shape())
    }

    /// The convolution whose stride is its kernel, as one matrix product over cut-out patches: faster than
    /// candle's convolution, whose backward pass is slower still.
    fn patches(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let (b, n) = (pixel_values.dim(0)?, self.grid);
        let used = n * self.side;
        let length = self.channels * self.side * self.side;
        let rows = pixel_values
            .narrow(2, 0, used)?
            .narrow(3, 0, used)?
            .reshape(&[b, self.channels, n, self.side, n, self.side][..])?
            .permute([0, 2, 4, 1, 3, 5])?
            .reshape((b * n * n, length))?;
        let rows = rows.matmul(&self.patch.reshape(((), length))?.t()?)?;
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
    use crate::config::tiny;
    use candle::{DType, Device};
    use candle_nn::VarMap;

    #[test]
    fn patches_equal_the_convolution() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let embeddings = Embeddings::load(&vb, &tiny()).unwrap();
        let pixels = Tensor::randn(0f32, 1., (2, 3, 10, 10), &Device::Cpu).unwrap();
        let conv = pixels.conv2d(&embeddings.patch, 0, 4, 1, 1).unwrap();
        let conv = conv.flatten_from(2).unwrap().transpose(1, 2).unwrap();
        let ours = embeddings.patches(&pixels).unwrap();
        assert_eq!(ours.dims(), [2, 4, 8]);
        let far = (ours - conv)
            .unwrap()
            .abs()
            .unwrap()
            .flatten_all()
            .unwrap()
            .max(0)
            .unwrap();
        assert!(far.to_scalar::<f32>().unwrap() < 1e-6);
    }

    #[test]
    fn an_image_of_another_size_is_an_error() {
        let map = VarMap::new();
        let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let embeddings = Embeddings::load(&vb, &tiny()).unwrap();
        let pixels = Tensor::zeros((2, 3, 10, 12), DType::F32, &Device::Cpu).unwrap();
        let error = embeddings.forward(&pixels).unwrap_err().to_string();
        assert!(
            error.contains("expected (b, 3, 10, 10), got [2, 3, 10, 12]"),
            "{error}"
        );
    }
}

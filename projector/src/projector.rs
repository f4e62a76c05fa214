//! Learned map from patch features to the embedding space of the decoder
//! (LLaVA's `multimodal_projector/builder.py`; ACE-M³'s projection matrix is the linear one;
//! transformers' `modeling_internvl.py`).

use acem3_kernels::{Activation, LayerNorm, Matrix, activate};
use candle::{Result, Tensor};
use candle_nn::VarBuilder;
use serde::{Deserialize, Serialize};

use crate::pixel_shuffle::pixel_shuffle;
use crate::pooled_projector::{PooledProjection, PooledProjector};

/// Constant that is added to the variance in the layer norm.
const NORM_EPS: f64 = 1e-5;

/// Architecture of a projector.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProjectorKind {
    /// One linear layer.
    #[serde(rename = "linear")]
    Linear,
    /// Two linear layers with the exact (error-function) GELU between them.
    #[serde(rename = "mlp2x_gelu")]
    Mlp2xGelu,
    /// `InternVL`: the features of each square of patches are joined ([`pixel_shuffle()`]), followed
    /// by a layer norm and two linear layers with the exact GELU between them.
    #[serde(rename = "pixel_shuffle")]
    PixelShuffle {
        /// Side of a square, in patches.
        factor: usize,
    },
    /// A mean over squares of patches, an RMS norm and a matrix (Gemma 3).
    #[serde(rename = "pooled")]
    Pooled(PooledProjection),
}

impl ProjectorKind {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Mlp2xGelu => "mlp2x_gelu",
            Self::PixelShuffle { .. } => "pixel_shuffle",
            Self::Pooled(_) => "pooled",
        }
    }

    /// Returns the number of image tokens for a number of patch features.
    pub fn token_count(self, features: usize) -> usize {
        match self {
            Self::Linear | Self::Mlp2xGelu => features,
            Self::PixelShuffle { factor } => {
                features.checked_div(factor.saturating_mul(factor)).unwrap_or(0)
            }
            Self::Pooled(settings) => settings.tokens_per_side * settings.tokens_per_side,
        }
    }
}

/// Architecture and sizes of a projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProjectorConfig {
    /// Architecture.
    pub kind: ProjectorKind,
    /// Hidden size of the vision tower (`c_v`).
    pub vision_hidden_size: usize,
    /// Hidden size of the decoder (`c`).
    pub hidden_size: usize,
}

/// Maps patch features to image tokens.
#[derive(Clone, Debug)]
pub struct Projector {
    kind: ProjectorKind,
    network: Network,
}

/// Network of a projector.
#[derive(Clone, Debug)]
enum Network {
    /// One or two linear layers.
    Linear(LinearLayers),
    /// Two linear layers after a layer norm of joined features.
    PixelShuffle {
        factor: usize,
        norm: LayerNorm,
        layers: LinearLayers,
    },
    Pooled(PooledProjector),
}

/// Linear layers with weight and bias, with the exact GELU between them.
#[derive(Clone, Debug)]
struct LinearLayers {
    first: (Matrix, Tensor),
    second: Option<(Matrix, Tensor)>,
}

impl LinearLayers {
    /// Maps features.
    ///
    /// # Shapes
    /// `(b, t, input)` to `(b, t, c)`.
    fn forward(&self, features: &Tensor) -> Result<Tensor> {
        let (b, t, input) = features.dims3()?;
        let affine =
            |x: &Tensor, (weight, bias): &(Matrix, Tensor)| weight.multiply(x)?.broadcast_add(bias);
        let mut x = affine(&features.reshape((b * t, input))?, &self.first)?;
        if let Some(second) = &self.second {
            x = affine(&activate(&x, Activation::Gelu)?, second)?;
        }
        let c = x.dim(1)?;
        x.reshape((b, t, c))
    }
}

impl Projector {
    /// Loads the projector from `vb`: `weight` and `bias`; with two layers, from `0` and `2`; with a
    /// layer norm, that from `0`, and the layers from `1` and `3`; or the tensors of Gemma 3.
    ///
    /// # Errors
    /// A tensor is missing or has another shape.
    pub fn load(vb: &VarBuilder, config: &ProjectorConfig) -> Result<Self> {
        let linear = |vb: VarBuilder, input: usize, output: usize| {
            let weight = Matrix::load(&vb, (output, input), "weight")?;
            Ok::<_, candle::Error>((weight, vb.get(output, "bias")?))
        };
        let (c_v, c) = (config.vision_hidden_size, config.hidden_size);
        let network = match config.kind {
            ProjectorKind::Linear => {
                Network::Linear(LinearLayers { first: linear(vb.clone(), c_v, c)?, second: None })
            }
            ProjectorKind::Mlp2xGelu => Network::Linear(LinearLayers {
                first: linear(vb.pp("0"), c_v, c)?,
                second: Some(linear(vb.pp("2"), c, c)?),
            }),
            ProjectorKind::PixelShuffle { factor } => {
                let joined = factor.saturating_mul(factor).saturating_mul(c_v);
                Network::PixelShuffle {
                    factor,
                    norm: LayerNorm::load(&vb.pp("0"), joined, NORM_EPS)?,
                    layers: LinearLayers {
                        first: linear(vb.pp("1"), joined, c)?,
                        second: Some(linear(vb.pp("3"), c, c)?),
                    },
                }
            }
            ProjectorKind::Pooled(settings) => {
                Network::Pooled(PooledProjector::load(vb, (c_v, c), settings)?)
            }
        };
        Ok(Self { kind: config.kind, network })
    }

    /// Returns the architecture.
    pub fn kind(&self) -> ProjectorKind {
        self.kind
    }

    /// Maps patch features to image tokens.
    ///
    /// # Shapes
    /// `(b, p, c_v)` to `(b, t, c)` with `t` from [`ProjectorKind::token_count`].
    pub fn forward(&self, features: &Tensor) -> Result<Tensor> {
        match &self.network {
            Network::Linear(layers) => layers.forward(features),
            Network::PixelShuffle { factor, norm, layers } => {
                layers.forward(&norm.forward(&pixel_shuffle(features, *factor)?)?)
            }
            Network::Pooled(projector) => projector.forward(features),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;
    use std::collections::HashMap;

    #[test]
    fn mlp2x_gelu_matches_hand_calculation() -> Result<()> {
        let t = |v: &[f32], s: &[usize]| Tensor::from_slice(v, s, &Device::Cpu);
        let weights = HashMap::from([
            ("0.weight".to_owned(), t(&[1.0, 0.0, 0.0, 2.0], &[2, 2])?),
            ("0.bias".to_owned(), t(&[0.0, 1.0], &[2])?),
            ("2.weight".to_owned(), t(&[1.0, 1.0, 0.0, 1.0], &[2, 2])?),
            ("2.bias".to_owned(), t(&[0.5, 0.0], &[2])?),
        ]);
        let vb = VarBuilder::from_tensors(weights, candle::DType::F32, &Device::Cpu);
        let config = ProjectorConfig {
            kind: ProjectorKind::Mlp2xGelu,
            vision_hidden_size: 2,
            hidden_size: 2,
        };
        let y = Projector::load(&vb, &config)?.forward(&t(&[1.0, 0.0], &[1, 1, 2])?)?;
        // gelu(1) = 0.841345 for both inner values, since 2·0 + 1 = 1.
        let y = y.flatten_all()?.to_vec1::<f32>()?;
        assert!((y[0] - 2.182_69).abs() < 1e-4 && (y[1] - 0.841_345).abs() < 1e-4, "{y:?}");
        Ok(())
    }
}

//! Learned map from patch features to the embedding space of the decoder
//! (LLaVA's `multimodal_projector/builder.py`; ACE-M³'s projection matrix is the linear one).

use acem3_kernels::matmul_transposed;
use candle::{Result, Tensor};
use candle_nn::VarBuilder;
use serde::{Deserialize, Serialize};

use super::pooled_projector::{PooledProjection, PooledProjector};

/// Architecture of a projector.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProjectorKind {
    /// One linear layer.
    #[serde(rename = "linear")]
    Linear,
    /// Two linear layers with the exact (error-function) GELU between them.
    #[serde(rename = "mlp2x_gelu")]
    Mlp2xGelu,
    /// A mean over squares of patches, an RMS norm and a matrix (Gemma 3).
    #[serde(rename = "pooled")]
    Pooled(PooledProjection),
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

impl ProjectorConfig {
    /// Returns the number of image tokens of `features` patch features.
    pub fn token_count(&self, features: usize) -> usize {
        match self.kind {
            ProjectorKind::Linear | ProjectorKind::Mlp2xGelu => features,
            ProjectorKind::Pooled(settings) => settings.tokens_per_side * settings.tokens_per_side,
        }
    }
}

/// Maps patch features to image tokens.
#[derive(Clone, Debug)]
pub struct Projector(Network);

/// Network of a projector.
#[derive(Clone, Debug)]
enum Network {
    /// One or two linear layers, each with weight and bias.
    Linear {
        first: (Tensor, Tensor),
        second: Option<(Tensor, Tensor)>,
    },
    Pooled(PooledProjector),
}

impl Projector {
    /// Loads the projector from `vb`: `weight` and `bias`, or `0.weight`, `0.bias`, `2.weight` and
    /// `2.bias`, or the tensors of Gemma 3.
    pub fn load(vb: &VarBuilder, config: &ProjectorConfig) -> Result<Self> {
        let linear = |vb: VarBuilder, input: usize, output: usize| {
            Ok::<_, candle::Error>((vb.get((output, input), "weight")?, vb.get(output, "bias")?))
        };
        let (c_v, c) = (config.vision_hidden_size, config.hidden_size);
        Ok(Self(match config.kind {
            ProjectorKind::Linear => {
                Network::Linear { first: linear(vb.clone(), c_v, c)?, second: None }
            }
            ProjectorKind::Mlp2xGelu => Network::Linear {
                first: linear(vb.pp("0"), c_v, c)?,
                second: Some(linear(vb.pp("2"), c, c)?),
            },
            ProjectorKind::Pooled(settings) => {
                Network::Pooled(PooledProjector::load(vb, (c_v, c), settings)?)
            }
        }))
    }

    /// Maps patch features to image tokens.
    ///
    /// # Shapes
    /// `(b, p, c_v)` to `(b, p', c)` with `p'` from [`ProjectorConfig::token_count`].
    pub fn forward(&self, features: &Tensor) -> Result<Tensor> {
        let (first, second) = match &self.0 {
            Network::Linear { first, second } => (first, second),
            Network::Pooled(projector) => return projector.forward(features),
        };
        let (b, p, c_v) = features.dims3()?;
        let affine = |x: &Tensor, (weight, bias): &(Tensor, Tensor)| {
            matmul_transposed(x, weight)?.broadcast_add(bias)
        };
        let mut x = affine(&features.reshape((b * p, c_v))?, first)?;
        if let Some(second) = second {
            x = affine(&x.gelu_erf()?, second)?;
        }
        let c = x.dim(1)?;
        x.reshape((b, p, c))
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

//! Projector of Gemma 3: patch features are averaged, normalised and multiplied by a matrix
//! (`Gemma3MultiModalProjector` in transformers' `modeling_gemma3.py`).

use acem3_kernels::{matmul_transposed, rms_norm};
use candle::{DType, Result, Tensor, bail};
use candle_nn::VarBuilder;
use serde::{Deserialize, Serialize};

/// Settings of a projector that averages patch features.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PooledProjection {
    /// Image tokens per side of the square. The patches per side are a multiple of it.
    pub tokens_per_side: usize,
    /// Epsilon of the RMS norm, added to the mean square.
    pub norm_eps: f64,
}

/// Averages squares of patch features and maps them to image tokens.
#[derive(Clone, Debug)]
pub(super) struct PooledProjector {
    settings: PooledProjection,
    /// Factors of the norm, `(c_v)`.
    norm: Tensor,
    /// `(c, c_v)`.
    weight: Tensor,
}

impl PooledProjector {
    /// Loads `mm_soft_emb_norm.weight`, which is stored minus 1, and `mm_input_projection_weight`.
    pub(super) fn load(
        vb: &VarBuilder,
        (c_v, c): (usize, usize),
        settings: PooledProjection,
    ) -> Result<Self> {
        let norm = vb.get(c_v, "mm_soft_emb_norm.weight")?;
        let dtype = norm.dtype();
        Ok(Self {
            settings,
            norm: (norm.to_dtype(DType::F32)? + 1.0)?.to_dtype(dtype)?,
            weight: vb.get((c_v, c), "mm_input_projection_weight")?.t()?.contiguous()?,
        })
    }

    /// Maps patch features to image tokens.
    ///
    /// # Shapes
    /// `(b, p, c_v)` to `(b, tokens_per_side², c)`.
    pub(super) fn forward(&self, features: &Tensor) -> Result<Tensor> {
        let (b, p, c_v) = features.dims3()?;
        let (side, grid) = (self.settings.tokens_per_side, p.isqrt());
        if side == 0 || grid * grid != p || !grid.is_multiple_of(side) {
            bail!("{p} patches are not a square whose side is a multiple of {side}");
        }
        let pooled = grid / side;
        let rows = features.reshape((b * side, pooled, grid * c_v))?.mean(1)?;
        let tokens = rows.reshape((b * side * side, pooled, c_v))?.mean(1)?;
        let normed = rms_norm(&tokens, &self.norm, self.settings.norm_eps)?;
        matmul_transposed(&normed, &self.weight)?.reshape((b, side * side, ()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use candle::Device;

    use super::*;

    #[test]
    fn squares_of_patches_are_averaged_and_normalised() -> Result<()> {
        let t = |v: &[f32], s: &[usize]| Tensor::from_slice(v, s, &Device::Cpu);
        let weights = HashMap::from([
            ("mm_soft_emb_norm.weight".to_owned(), t(&[1.0, 0.0], &[2])?),
            ("mm_input_projection_weight".to_owned(), t(&[1.0, 0.0, 0.0, 10.0], &[2, 2])?),
        ]);
        let vb = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
        let load = |tokens_per_side| {
            let settings = PooledProjection { tokens_per_side, norm_eps: 1e-12 };
            PooledProjector::load(&vb, (2, 2), settings)
        };
        // A grid of 2 x 2 patches becomes one token with the mean (3, 4).
        let features = t(&[0.0, 4.0, 6.0, 4.0, 2.0, 4.0, 4.0, 4.0], &[1, 4, 2])?;
        let token = load(1)?.forward(&features)?.flatten_all()?.to_vec1::<f32>()?;
        let root = 12.5f32.sqrt();
        assert!((token[0] - 6.0 / root).abs() < 1e-5, "{token:?}");
        assert!((token[1] - 40.0 / root).abs() < 1e-4, "{token:?}");
        assert_eq!(load(2)?.forward(&features)?.dims(), [1, 4, 2]);
        let error = load(3)?.forward(&features).unwrap_err().to_string();
        assert!(error.contains("4 patches"), "{error}");
        Ok(())
    }
}

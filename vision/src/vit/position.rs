//! Position embeddings, and their interpolation to another grid.

use candle::{DType, Device, Result, Tensor};

use crate::config::VisionConfig;

/// A learned vector for each token.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    table: Tensor,
    resampling: Option<PositionResampling>,
}

/// Interpolation from the stored grid to the grid of patches.
#[derive(Clone, Debug)]
struct PositionResampling {
    /// (n, g): weights of the g stored rows for each of the n new rows. Columns have the same
    /// weights.
    weights: Tensor,
    class_tokens: usize,
}

impl Positions {
    /// Stores the table (rows, c), and prepares its interpolation if the stored grid differs from
    /// the grid of patches.
    pub(super) fn new(table: Tensor, config: &VisionConfig) -> Result<Self> {
        let grid = config.grid_side();
        let stored_grid = config.variant.position_grid.filter(|side| *side != grid);
        let resampling = stored_grid
            .map(|stored| {
                let weights =
                    Tensor::from_vec(bicubic_weights(stored, grid), (grid, stored), &Device::Cpu);
                Ok::<_, candle::Error>(PositionResampling {
                    weights: weights?.to_device(table.device())?,
                    class_tokens: config.class_token_count(),
                })
            })
            .transpose()?;
        Ok(Self { table, resampling })
    }

    /// Returns the position embeddings of the tokens. Differentiable. The result is in f32 for any
    /// dtype of the table, because it is added to f32 activations.
    ///
    /// # Shapes
    /// () → (t, c).
    pub(super) fn for_patch_grid(&self) -> Result<Tensor> {
        let table = self.table.to_dtype(DType::F32)?;
        let Some(PositionResampling { weights, class_tokens }) = &self.resampling else {
            return Ok(table);
        };
        let (n, g) = weights.dims2()?;
        let c = table.dim(1)?;
        let patches = table.narrow(0, *class_tokens, g * g)?;
        let patches = patches.reshape((g, g * c))?;
        let new_rows = weights.matmul(&patches)?.reshape((n, g, c))?;
        let columns = new_rows.transpose(0, 1)?.reshape((g, n * c))?;
        let new_columns = weights.matmul(&columns)?.reshape((n, n, c))?;
        let resampled = new_columns.transpose(0, 1)?.reshape((n * n, c))?;
        let class = table.narrow(0, 0, *class_tokens)?;
        Tensor::cat(&[&class, &resampled], 0)
    }
}

/// Returns the weights of `torch.nn.functional.interpolate(mode="bicubic", align_corners=False)`
/// along one axis: a cubic kernel with `a = −0.75` whose width does not depend on the scale.
/// Positions outside use the edge value.
///
/// # Shapes
/// () → `new` rows of `old` weights.
fn bicubic_weights(old: usize, new: usize) -> Vec<f32> {
    const A: f32 = -0.75;
    let inner = |x: f32| ((A + 2.) * x - (A + 3.)) * x * x + 1.;
    let outer = |x: f32| ((A * x - 5. * A) * x + 8. * A) * x - 4. * A;
    let scale = old as f32 / new as f32;
    let mut weights = vec![0f32; old * new];
    for (i, row) in weights.chunks_exact_mut(old).enumerate() {
        let center = scale * (i as f32 + 0.5) - 0.5;
        let t = center - center.floor();
        let taps = [outer(t + 1.), inner(t), inner(1. - t), outer(2. - t)];
        for (offset, tap) in (-1i64..).zip(taps) {
            let index = (center.floor() as i64 + offset).max(0) as usize;
            if let Some(weight) = row.get_mut(index.min(old - 1)) {
                *weight += tap;
            }
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one_and_equal_grids_give_the_identity() {
        for (old, new) in [(37, 16), (16, 37), (5, 4), (1, 3), (2, 1)] {
            for row in bicubic_weights(old, new).chunks(old) {
                assert!((row.iter().sum::<f32>() - 1.).abs() < 1e-5, "{old} {new}");
            }
        }
        let identity = [1., 0., 0., 0., 1., 0., 0., 0., 1.];
        for (weight, expected) in bicubic_weights(3, 3).iter().zip(identity) {
            assert!((weight - expected).abs() < 1e-6);
        }
    }
}

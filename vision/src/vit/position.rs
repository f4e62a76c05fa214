//! The table of positions, as it is stored or brought to another grid.

use candle::{DType, Device, Result, Tensor};

use crate::config::VisionConfig;

/// A learned vector for every token.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    table: Tensor,
    resampling: Option<Resampling>,
}

/// From the stored grid to that of the patches.
#[derive(Clone, Debug)]
struct Resampling {
    /// (n, g): each new row's weights of the old ones; columns take the same.
    weights: Tensor,
    class_tokens: usize,
}

impl Positions {
    /// Keeps the table (rows, c); it is resampled where the configuration has another grid for it.
    pub(super) fn new(table: Tensor, config: &VisionConfig) -> Result<Self> {
        let grid = config.grid();
        let stored = config.form.position_grid.filter(|side| *side != grid);
        let resampling = stored
            .map(|stored| {
                let weights = Tensor::from_vec(bicubic(stored, grid), (grid, stored), &Device::Cpu);
                Ok::<_, candle::Error>(Resampling {
                    weights: weights?.to_device(table.device())?,
                    class_tokens: config.class_tokens(),
                })
            })
            .transpose()?;
        Ok(Self { table, resampling })
    }

    /// The positions of the tokens, differentiable, in f32 whatever the type of the table: they are added.
    ///
    /// # Shapes
    /// () → (t, c).
    pub(super) fn table(&self) -> Result<Tensor> {
        let table = self.table.to_dtype(DType::F32)?;
        let Some(Resampling {
            weights,
            class_tokens,
        }) = &self.resampling
        else {
            return Ok(table);
        };
        let (n, g) = weights.dims2()?;
        let c = table.dim(1)?;
        let patches = table.narrow(0, *class_tokens, g * g)?;
        let patches = patches.reshape((g, g * c))?;
        let tall = weights.matmul(&patches)?.reshape((n, g, c))?;
        let turned = tall.transpose(0, 1)?.reshape((g, n * c))?;
        let wide = weights.matmul(&turned)?.reshape((n, n, c))?;
        let wide = wide.transpose(0, 1)?.reshape((n * n, c))?;
        let class = table.narrow(0, 0, *class_tokens)?;
        Tensor::cat(&[&class, &wide], 0)
    }
}

/// The weights of `torch.nn.functional.interpolate(mode="bicubic", align_corners=False)` along one axis: a
/// cubic with `a = −0.75` that does not widen with the reduction; beyond the edge the edge is repeated.
///
/// # Shapes
/// () → `new` rows of `old` weights.
fn bicubic(old: usize, new: usize) -> Vec<f32> {
    const A: f32 = -0.75;
    let near = |x: f32| ((A + 2.) * x - (A + 3.)) * x * x + 1.;
    let far = |x: f32| ((A * x - 5. * A) * x + 8. * A) * x - 4. * A;
    let scale = old as f32 / new as f32;
    let mut weights = vec![0f32; old * new];
    for (i, row) in weights.chunks_exact_mut(old).enumerate() {
        let center = scale * (i as f32 + 0.5) - 0.5;
        let t = center - center.floor();
        let taps = [far(t + 1.), near(t), near(1. - t), far(2. - t)];
        for (offset, tap) in (-1i64..).zip(taps) {
            let at = (center.floor() as i64 + offset).max(0) as usize;
            if let Some(weight) = row.get_mut(at.min(old - 1)) {
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
    fn weights_sum_to_one_and_the_same_grid_is_the_identity() {
        for (old, new) in [(37, 16), (16, 37), (5, 4), (1, 3), (2, 1)] {
            for row in bicubic(old, new).chunks(old) {
                assert!((row.iter().sum::<f32>() - 1.).abs() < 1e-5, "{old} {new}");
            }
        }
        let identity = [1., 0., 0., 0., 1., 0., 0., 0., 1.];
        for (weight, expected) in bicubic(3, 3).iter().zip(identity) {
            assert!((weight - expected).abs() < 1e-6);
        }
    }
}

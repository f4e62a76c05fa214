//! AdamW with decoupled weight decay (PyTorch's `torch.optim.AdamW`).

use candle::{Result, Tensor, Var, bail};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The constants of the update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamWConfig {
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of squared gradients.
    pub beta2: f64,
    /// Added to the root.
    pub eps: f64,
    /// Weight decay of matrices; norms and biases are not decayed.
    pub weight_decay: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.98,
            eps: 1e-8,
            weight_decay: 0.01,
        }
    }
}

/// One parameter with its two running means.
pub(super) struct Moments {
    pub(super) mean: Vec<f32>,
    pub(super) square: Vec<f32>,
}

/// The optimizer's state.
pub struct AdamW {
    config: AdamWConfig,
    pub(super) parameters: Vec<(String, Var)>,
    pub(super) moments: Vec<Moments>,
    pub(super) step: u64,
}

impl AdamW {
    /// An optimizer of these parameters, its means at zero.
    pub fn new(parameters: Vec<(String, Var)>, config: AdamWConfig) -> Self {
        let zeros = |var: &Var| vec![0.0; var.elem_count()];
        let moments = parameters
            .iter()
            .map(|(_, var)| Moments {
                mean: zeros(var),
                square: zeros(var),
            })
            .collect();
        Self {
            config,
            parameters,
            moments,
            step: 0,
        }
    }

    /// The parameters, by name.
    pub fn parameters(&self) -> &[(String, Var)] {
        &self.parameters
    }

    /// Updates every parameter with its gradient (scaled by `scale`) at a learning rate.
    pub fn update(&mut self, gradients: &[Vec<f32>], scale: f32, rate: f64) -> Result<()> {
        if gradients.len() != self.parameters.len() {
            bail!(
                "{} gradients for {} parameters",
                gradients.len(),
                self.parameters.len()
            );
        }
        self.step += 1;
        let c = &self.config;
        let correction = |beta: f64| 1.0 - beta.powf(self.step as f64);
        let (mean_fix, square_fix) = (correction(c.beta1), correction(c.beta2).sqrt());
        let (b1, b2) = (c.beta1 as f32, c.beta2 as f32);
        let size = (rate / mean_fix) as f32;
        let (square_fix, eps) = (square_fix as f32, c.eps as f32);
        let all = self
            .parameters
            .par_iter()
            .zip(&mut self.moments)
            .zip(gradients);
        all.try_for_each(|(((_, var), moments), gradient)| {
            let decay = if var.rank() > 1 {
                (1.0 - rate * c.weight_decay) as f32
            } else {
                1.0
            };
            let mut values = var.flatten_all()?.to_vec1::<f32>()?;
            let state = moments.mean.iter_mut().zip(&mut moments.square);
            for ((value, gradient), (mean, square)) in values.iter_mut().zip(gradient).zip(state) {
                let gradient = gradient * scale;
                *mean = b1 * *mean + (1.0 - b1) * gradient;
                *square = b2 * *square + (1.0 - b2) * gradient * gradient;
                *value = *value * decay - size * *mean / (square.sqrt() / square_fix + eps);
            }
            var.set(&Tensor::from_vec(values, var.shape(), var.device())?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    /// Against `torch.optim.AdamW(lr=0.1, betas=(0.9, 0.98), weight_decay=0.01)`, two steps with
    /// gradients (1, -2) and (0.5, 0.5) from (1, 2), computed by the update's definition in f64.
    #[test]
    fn two_steps_by_the_definition() -> Result<()> {
        let var = Var::from_tensor(&Tensor::new(&[[1f32, 2.0]], &Device::Cpu)?)?;
        let mut adam = AdamW::new(vec![("w".to_owned(), var.clone())], AdamWConfig::default());
        let (mut value, mut m, mut v) = ([1.0f64, 2.0], [0.0f64; 2], [0.0f64; 2]);
        for (t, g) in [[1.0f64, -2.0], [0.5, 0.5]].into_iter().enumerate() {
            adam.update(&[g.iter().map(|g| *g as f32).collect()], 1.0, 0.1)?;
            for i in 0..2 {
                m[i] = 0.9 * m[i] + 0.1 * g[i];
                v[i] = 0.98 * v[i] + 0.02 * g[i] * g[i];
                let t = i32::try_from(t + 1).unwrap();
                let (mh, vh) = (
                    m[i] / (1.0 - 0.9f64.powi(t)),
                    v[i] / (1.0 - 0.98f64.powi(t)),
                );
                value[i] = value[i] * (1.0 - 0.1 * 0.01) - 0.1 * mh / (vh.sqrt() + 1e-8);
            }
        }
        let got = var.flatten_all()?.to_vec1::<f32>()?;
        for (got, want) in got.iter().zip(value) {
            assert!((f64::from(*got) - want).abs() < 1e-5, "{got} {want}");
        }
        Ok(())
    }
}

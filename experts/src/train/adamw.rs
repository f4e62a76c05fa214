//! AdamW with decoupled weight decay (PyTorch's `torch.optim.AdamW`), in single precision.
//!
//! A weight that a model computes with in half precision has a master here, its value in f32: steps too small for the
//! half type add up in the master, of which the weight is the rounded copy (Micikevicius et al., 2018, "Mixed precision
//! training", §3.1). Masters and means lie in main memory wherever the weights are, so that a device holds nothing
//! of them (Ren et al., 2021, "ZeRO-Offload", §4), and the update is the same to the bit on all devices.

use candle::{DType, Device, Result, Tensor, Var, bail};
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

/// What is known of one parameter beside its value.
pub(super) struct State {
    pub(super) mean: Vec<f32>,
    pub(super) square: Vec<f32>,
    /// Its value, where it is kept in a narrower type than f32.
    pub(super) master: Option<Vec<f32>>,
}

/// The optimizer's state.
pub struct AdamW {
    config: AdamWConfig,
    pub(super) parameters: Vec<(String, Var)>,
    pub(super) states: Vec<State>,
    pub(super) step: u64,
}

impl AdamW {
    /// An optimizer of these parameters, its means at zero.
    pub fn new(parameters: Vec<(String, Var)>, config: AdamWConfig) -> Self {
        let state = |(_, var): &(String, Var)| State {
            mean: vec![0.0; var.elem_count()],
            square: vec![0.0; var.elem_count()],
            master: None,
        };
        Self {
            config,
            states: parameters.iter().map(state).collect(),
            parameters,
            step: 0,
        }
    }

    /// The same with a master for every parameter that is not in f32, which begins as the value that `exact` gives
    /// for its name; the parameter is the rounded copy of that.
    pub fn with_masters(mut self, exact: impl Fn(&str, &Var) -> Result<Tensor>) -> Result<Self> {
        for ((name, var), state) in self.parameters.iter().zip(&mut self.states) {
            if var.dtype() != DType::F32 {
                state.master = Some(floats(&exact(name, var)?)?);
            }
        }
        Ok(self)
    }

    /// The parameters, by name.
    pub fn parameters(&self) -> &[(String, Var)] {
        &self.parameters
    }

    /// The values of the parameters by name, in f32 on the CPU: the masters where there are some.
    pub fn values(&self) -> Result<Vec<(String, Tensor)>> {
        let all = self.parameters.iter().zip(&self.states);
        let values = all.map(|((name, var), state)| {
            let value = match &state.master {
                Some(master) => Tensor::from_slice(master, var.shape(), &Device::Cpu)?,
                None => var.as_detached_tensor().to_device(&Device::Cpu)?,
            };
            Ok((name.clone(), value))
        });
        values.collect()
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
            .zip(&mut self.states)
            .zip(gradients);
        all.try_for_each(|(((name, var), state), gradient)| {
            let decay = if var.rank() > 1 {
                (1.0 - rate * c.weight_decay) as f32
            } else {
                1.0
            };
            let mut own;
            let values = match &mut state.master {
                Some(master) => master,
                None if var.dtype() == DType::F32 => {
                    own = floats(var)?;
                    &mut own
                }
                None => bail!("`{name}` is kept in {:?} and has no master", var.dtype()),
            };
            let means = state.mean.iter_mut().zip(&mut state.square);
            for ((value, gradient), (mean, square)) in values.iter_mut().zip(gradient).zip(means) {
                let gradient = gradient * scale;
                *mean = b1 * *mean + (1.0 - b1) * gradient;
                *square = b2 * *square + (1.0 - b2) * gradient * gradient;
                *value = *value * decay - size * *mean / (square.sqrt() / square_fix + eps);
            }
            set(var, &Tensor::from_slice(values, var.shape(), &Device::Cpu)?)
        })
    }
}

/// A tensor's values in order, wherever it lies.
pub(super) fn floats(tensor: &Tensor) -> Result<Vec<f32>> {
    // Moved before it is widened: half the bytes.
    let near = tensor.detach().to_device(&Device::Cpu)?;
    near.to_dtype(DType::F32)?.flatten_all()?.to_vec1()
}

/// Gives a variable values of its shape, rounded to its type.
pub(super) fn set(var: &Var, values: &Tensor) -> Result<()> {
    // Rounded before it is moved.
    var.set(&values.to_dtype(var.dtype())?.to_device(var.device())?)
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

    /// A hundred steps, each a tenth of what bf16 can tell from one: a rounded value would never move.
    #[test]
    fn a_master_gathers_steps_that_its_rounded_copy_would_swallow() -> Result<()> {
        let start = Tensor::new(&[1.001f32], &Device::Cpu)?;
        let var = Var::from_tensor(&start.to_dtype(DType::BF16)?)?;
        assert_eq!(floats(&var)?, [1.0]);
        let parameters = vec![("w".to_owned(), var.clone())];
        let mut adam = AdamW::new(parameters, AdamWConfig::default());
        assert!(adam.update(&[vec![1.0]], 1.0, 4e-4).is_err(), "no master");
        adam = AdamW::new(adam.parameters, adam.config).with_masters(|_, _| Ok(start.clone()))?;
        let mut copies = Vec::new();
        for _ in 0..100 {
            adam.update(&[vec![1.0]], 1.0, 4e-4)?;
            let master = adam.values()?.remove(0).1;
            copies.push(floats(&var)?[0]);
            assert_eq!(floats(&master.to_dtype(DType::BF16)?)?, floats(&var)?);
        }
        // A constant gradient: every step is the rate.
        let master = floats(&adam.values()?.remove(0).1)?[0];
        assert!((master - (1.001 - 0.04)).abs() < 1e-4, "{master}");
        copies.dedup();
        assert!(copies.len() > 5 && copies.len() < 20, "{copies:?}");
        Ok(())
    }
}

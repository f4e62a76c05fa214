//! AdamW with decoupled weight decay (PyTorch's `torch.optim.AdamW`), in single precision.
//!
//! A parameter in half precision has a master weight in f32. Steps below the precision of the half
//! type accumulate in the master weight, and the parameter is its rounded copy (Micikevicius et
//! al., 2018, "Mixed precision training", §3.1). The optimizer state is in main memory even if the
//! parameters are on a GPU (Ren et al., 2021, "ZeRO-Offload", §4). The update is therefore
//! bit-identical on all devices.

use candle::{DType, Device, Result, Tensor, Var, bail};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Hyperparameters of AdamW.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamWConfig {
    /// Decay rate of the mean gradient.
    pub beta1: f64,
    /// Decay rate of the mean squared gradient.
    pub beta2: f64,
    /// Constant added to the denominator.
    pub eps: f64,
    /// Weight decay of matrices. Norms and biases have none.
    pub weight_decay: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.98, eps: 1e-8, weight_decay: 0.01 }
    }
}

/// Optimizer state of one parameter.
pub(super) struct AdamWState {
    /// Running mean of the gradient.
    pub(super) mean: Vec<f32>,
    /// Running mean of the squared gradient.
    pub(super) square: Vec<f32>,
    /// Master weight. `None` if the parameter is in f32.
    pub(super) master: Option<Vec<f32>>,
}

/// The optimizer: parameters, their state and the number of steps.
pub struct AdamW {
    config: AdamWConfig,
    pub(super) parameters: Vec<(String, Var)>,
    pub(super) states: Vec<AdamWState>,
    pub(super) step: u64,
}

impl AdamW {
    /// Creates an optimizer whose mean gradients are zero.
    pub fn new(parameters: Vec<(String, Var)>, config: AdamWConfig) -> Self {
        let state = |(_, var): &(String, Var)| AdamWState {
            mean: vec![0.0; var.elem_count()],
            square: vec![0.0; var.elem_count()],
            master: None,
        };
        Self { config, states: parameters.iter().map(state).collect(), parameters, step: 0 }
    }

    /// Adds a master weight to each parameter that is not in f32. `initial_value` returns its
    /// value. The parameter must be the rounded copy of that value.
    pub fn with_master_weights(
        mut self,
        initial_value: impl Fn(&str, &Var) -> Result<Tensor>,
    ) -> Result<Self> {
        for ((name, var), state) in self.parameters.iter().zip(&mut self.states) {
            if var.dtype() != DType::F32 {
                state.master = Some(to_f32_vec(&initial_value(name, var)?)?);
            }
        }
        Ok(self)
    }

    /// Returns the parameters with their names.
    pub fn parameters(&self) -> &[(String, Var)] {
        &self.parameters
    }

    /// Returns the parameters with their names, in f32 on the CPU: the master weight if there is
    /// one, else the parameter.
    pub fn f32_values(&self) -> Result<Vec<(String, Tensor)>> {
        let parameters = self.parameters.iter().zip(&self.states);
        let values = parameters.map(|((name, var), state)| {
            let value = match &state.master {
                Some(master) => Tensor::from_slice(master, var.shape(), &Device::Cpu)?,
                None => var.as_detached_tensor().to_device(&Device::Cpu)?,
            };
            Ok((name.clone(), value))
        });
        values.collect()
    }

    /// Updates each parameter with its gradient times `scale`, at learning rate `rate`.
    pub fn update(&mut self, gradients: &[Vec<f32>], scale: f32, rate: f64) -> Result<()> {
        if gradients.len() != self.parameters.len() {
            bail!("AdamW: expected {} gradients, found {}", self.parameters.len(), gradients.len());
        }
        self.step += 1;
        let config = &self.config;
        let bias_correction = |beta: f64| 1.0 - beta.powf(self.step as f64);
        let mean_correction = bias_correction(config.beta1);
        let root_correction = bias_correction(config.beta2).sqrt() as f32;
        let (beta1, beta2) = (config.beta1 as f32, config.beta2 as f32);
        let step_size = (rate / mean_correction) as f32;
        let eps = config.eps as f32;
        let updates = self.parameters.par_iter().zip(&mut self.states).zip(gradients);
        updates.try_for_each(|(((name, var), state), gradient)| {
            let decay =
                if var.rank() > 1 { (1.0 - rate * config.weight_decay) as f32 } else { 1.0 };
            let mut parameter_values;
            let values = match &mut state.master {
                Some(master) => master,
                None if var.dtype() == DType::F32 => {
                    parameter_values = to_f32_vec(var)?;
                    &mut parameter_values
                }
                None => bail!("`{name}` is {:?} and has no master weight", var.dtype()),
            };
            let means = state.mean.iter_mut().zip(&mut state.square);
            for ((value, gradient), (mean, square)) in values.iter_mut().zip(gradient).zip(means) {
                let gradient = gradient * scale;
                *mean = beta1 * *mean + (1.0 - beta1) * gradient;
                *square = beta2 * *square + (1.0 - beta2) * gradient * gradient;
                *value =
                    *value * decay - step_size * *mean / (square.sqrt() / root_correction + eps);
            }
            assign_rounded(var, &Tensor::from_slice(values, var.shape(), &Device::Cpu)?)
        })
    }
}

/// Copies the values of a tensor on any device to a vector, in row-major order.
pub(super) fn to_f32_vec(tensor: &Tensor) -> Result<Vec<f32>> {
    // Copy before widening: half precision has half the bytes.
    let on_cpu = tensor.detach().to_device(&Device::Cpu)?;
    on_cpu.to_dtype(DType::F32)?.flatten_all()?.to_vec1()
}

/// Assigns values to a variable of the same shape, rounded to its dtype.
pub(super) fn assign_rounded(var: &Var, values: &Tensor) -> Result<()> {
    // Round before copying: half precision has half the bytes.
    var.set(&values.to_dtype(var.dtype())?.to_device(var.device())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    /// Two steps from (1, 2) with gradients (1, -2) and (0.5, 0.5), compared with the definition of
    /// `torch.optim.AdamW(lr=0.1, betas=(0.9, 0.98), weight_decay=0.01)` in f64.
    #[test]
    fn two_steps_match_definition() -> Result<()> {
        let var = Var::from_tensor(&Tensor::new(&[[1f32, 2.0]], &Device::Cpu)?)?;
        let mut adam = AdamW::new(vec![("w".to_owned(), var.clone())], AdamWConfig::default());
        let (mut value, mut m, mut v) = ([1.0f64, 2.0], [0.0f64; 2], [0.0f64; 2]);
        for (t, g) in [[1.0f64, -2.0], [0.5, 0.5]].into_iter().enumerate() {
            adam.update(&[g.iter().map(|g| *g as f32).collect()], 1.0, 0.1)?;
            for i in 0..2 {
                m[i] = 0.9 * m[i] + 0.1 * g[i];
                v[i] = 0.98 * v[i] + 0.02 * g[i] * g[i];
                let t = i32::try_from(t + 1).unwrap();
                let (mh, vh) = (m[i] / (1.0 - 0.9f64.powi(t)), v[i] / (1.0 - 0.98f64.powi(t)));
                value[i] = value[i] * (1.0 - 0.1 * 0.01) - 0.1 * mh / (vh.sqrt() + 1e-8);
            }
        }
        let updated = var.flatten_all()?.to_vec1::<f32>()?;
        for (updated, expected) in updated.iter().zip(value) {
            assert!((f64::from(*updated) - expected).abs() < 1e-5, "{updated} {expected}");
        }
        Ok(())
    }

    /// A hundred steps, each a tenth of the bf16 spacing near 1. A parameter without a master
    /// weight would not change.
    #[test]
    fn master_weight_accumulates_steps_below_bf16_precision() -> Result<()> {
        let start = Tensor::new(&[1.001f32], &Device::Cpu)?;
        let var = Var::from_tensor(&start.to_dtype(DType::BF16)?)?;
        assert_eq!(to_f32_vec(&var)?, [1.0]);
        let parameters = vec![("w".to_owned(), var.clone())];
        let mut adam = AdamW::new(parameters, AdamWConfig::default());
        assert!(adam.update(&[vec![1.0]], 1.0, 4e-4).is_err(), "no master weight");
        adam = AdamW::new(adam.parameters, adam.config)
            .with_master_weights(|_, _| Ok(start.clone()))?;
        let mut copies = Vec::new();
        for _ in 0..100 {
            adam.update(&[vec![1.0]], 1.0, 4e-4)?;
            let master = adam.f32_values()?.remove(0).1;
            copies.push(to_f32_vec(&var)?[0]);
            assert_eq!(to_f32_vec(&master.to_dtype(DType::BF16)?)?, to_f32_vec(&var)?);
        }
        // With a constant gradient each step equals the learning rate.
        let master = to_f32_vec(&adam.f32_values()?.remove(0).1)?[0];
        assert!((master - (1.001 - 0.04)).abs() < 1e-4, "{master}");
        copies.dedup();
        assert!(copies.len() > 5 && copies.len() < 20, "{copies:?}");
        Ok(())
    }
}

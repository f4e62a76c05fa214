//! The optimizer, in single precision: AdamW, or Muon for the matrices of layers.
//!
//! A parameter in half precision has a master weight in f32. Steps below the precision of the half
//! type accumulate in the master weight, and the parameter is its rounded copy (Micikevicius et
//! al., 2018, "Mixed precision training", §3.1). The optimizer state is in main memory even if the
//! parameters are on a GPU (Ren et al., 2021, "ZeRO-Offload", §4). The update is therefore
//! bit-identical on all devices.

use candle::{DType, Device, Result, Tensor, Var, bail};
use rayon::prelude::*;

use super::adamw::{AdamW, Moments};
use super::muon::{is_hidden_matrix, muon_update};
use super::optimizer_config::{MatrixRule, OptimizerConfig};

/// Optimizer state of one parameter.
pub(super) struct OptimizerState {
    /// Running mean of the gradient.
    pub(super) mean: Vec<f32>,
    /// Running mean of the squared gradient. `None` if Muon updates the parameter.
    pub(super) square: Option<Vec<f32>>,
    /// Master weight. `None` if the parameter is in f32.
    pub(super) master: Option<Vec<f32>>,
}

/// The optimizer: parameters, their state and the number of steps.
pub struct Optimizer {
    config: OptimizerConfig,
    pub(super) parameters: Vec<(String, Var)>,
    pub(super) states: Vec<OptimizerState>,
    pub(super) step: u64,
}

impl Optimizer {
    /// Creates an optimizer whose mean gradients are zero.
    pub fn new(parameters: Vec<(String, Var)>, config: OptimizerConfig) -> Self {
        let uses_muon = |name: &str, var: &Var| {
            config.matrices == MatrixRule::Muon && is_hidden_matrix(name, var.rank())
        };
        let state = |(name, var): &(String, Var)| OptimizerState {
            mean: vec![0.0; var.elem_count()],
            square: (!uses_muon(name, var)).then(|| vec![0.0; var.elem_count()]),
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
            let expected = self.parameters.len();
            bail!("optimizer: expected {expected} gradients, found {}", gradients.len());
        }
        self.step += 1;
        let config = &self.config;
        let adamw = AdamW::new(config, self.step, rate);
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
            let gradient = gradient.iter().map(|gradient| gradient * scale);
            let mean = &mut state.mean;
            if let Some(square) = &mut state.square {
                adamw.update(values, gradient, Moments { mean, square }, decay);
            } else {
                let update = muon_update(gradient, mean, var.dims2()?, config)?;
                for (value, update) in values.iter_mut().zip(update) {
                    *value = *value * decay - rate as f32 * update;
                }
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
        let mut adam =
            Optimizer::new(vec![("w".to_owned(), var.clone())], OptimizerConfig::default());
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
        let mut adam = Optimizer::new(parameters, OptimizerConfig::default());
        assert!(adam.update(&[vec![1.0]], 1.0, 4e-4).is_err(), "no master weight");
        adam = Optimizer::new(adam.parameters, adam.config)
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

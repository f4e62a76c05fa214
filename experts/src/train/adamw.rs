//! AdamW with decoupled weight decay (PyTorch's `torch.optim.AdamW`).

use super::optimizer_config::OptimizerConfig;

/// The rule of AdamW at one step: hyperparameters and bias corrections.
pub(super) struct AdamW {
    beta1: f32,
    beta2: f32,
    eps: f32,
    step_size: f32,
    root_correction: f32,
}

/// Moments of the gradient of one parameter.
pub(super) struct Moments<'a> {
    /// Running mean of the gradient.
    pub(super) mean: &'a mut [f32],
    /// Running mean of the squared gradient.
    pub(super) square: &'a mut [f32],
}

impl AdamW {
    /// Creates the rule for a step, counted from 1, at learning rate `rate`.
    pub(super) fn new(config: &OptimizerConfig, step: u64, rate: f64) -> Self {
        let bias_correction = |beta: f64| 1.0 - beta.powf(step as f64);
        Self {
            beta1: config.beta1 as f32,
            beta2: config.beta2 as f32,
            eps: config.eps as f32,
            step_size: (rate / bias_correction(config.beta1)) as f32,
            root_correction: bias_correction(config.beta2).sqrt() as f32,
        }
    }

    /// Updates the state with a gradient, and the values, which are multiplied by `decay` first.
    pub(super) fn update(
        &self,
        values: &mut [f32],
        gradient: impl Iterator<Item = f32>,
        moments: Moments,
        decay: f32,
    ) {
        let moments = moments.mean.iter_mut().zip(moments.square);
        for ((value, gradient), (mean, square)) in values.iter_mut().zip(gradient).zip(moments) {
            *mean = self.beta1 * *mean + (1.0 - self.beta1) * gradient;
            *square = self.beta2 * *square + (1.0 - self.beta2) * gradient * gradient;
            *value = *value * decay
                - self.step_size * *mean / (square.sqrt() / self.root_correction + self.eps);
        }
    }
}

//! Learning rate schedule of a stage: linear warmup, then cosine decay to a fraction of the peak.

use serde::{Deserialize, Serialize};

/// Learning rate as a function of the step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Highest rate, reached at the end of the warmup.
    pub peak: f64,
    /// Steps of the warmup.
    pub warmup: u64,
    /// Steps of the stage, including the warmup.
    pub steps: u64,
    /// Final rate as a fraction of the peak.
    pub floor: f64,
}

impl Schedule {
    /// Returns the rate of a step. Steps count from 0.
    pub fn rate(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        let length = self.steps.saturating_sub(self.warmup).max(1) as f64;
        let progress = ((step - self.warmup) as f64 / length).min(1.0);
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * progress).cos());
        self.peak * (self.floor + (1.0 - self.floor) * cosine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_warms_up_and_decays_to_floor() {
        let schedule = Schedule { peak: 1.0, warmup: 10, steps: 110, floor: 0.1 };
        assert!((schedule.rate(0) - 0.1).abs() < 1e-12);
        assert!((schedule.rate(10) - 1.0).abs() < 1e-12);
        assert!((schedule.rate(60) - 0.55).abs() < 1e-12);
        assert!((schedule.rate(110) - 0.1).abs() < 1e-12);
    }
}

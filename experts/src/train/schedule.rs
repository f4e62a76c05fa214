//! The learning rate over a stage: linear warm-up, then a cosine to a fraction of the peak.

use serde::{Deserialize, Serialize};

/// Learning rate by step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The highest rate, reached at the end of the warm-up.
    pub peak: f64,
    /// Steps of warm-up.
    pub warmup: u64,
    /// All steps of the stage.
    pub steps: u64,
    /// The last rate as a fraction of the peak.
    pub floor: f64,
}

impl Schedule {
    /// The rate of a step, counted from zero.
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
    fn warms_up_peaks_and_ends_at_the_floor() {
        let schedule = Schedule {
            peak: 1.0,
            warmup: 10,
            steps: 110,
            floor: 0.1,
        };
        assert!((schedule.rate(0) - 0.1).abs() < 1e-12);
        assert!((schedule.rate(10) - 1.0).abs() < 1e-12);
        assert!((schedule.rate(60) - 0.55).abs() < 1e-12);
        assert!((schedule.rate(110) - 0.1).abs() < 1e-12);
    }
}

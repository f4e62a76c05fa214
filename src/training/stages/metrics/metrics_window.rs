//! Mean metrics since the last progress report.

use std::time::Instant;

use acem3_experts::train::StepReport;

/// Sums of the metrics of recent steps.
pub(crate) struct MetricsWindow {
    start: Instant,
    steps: u64,
    /// Number of steps that report an accuracy.
    steps_with_accuracy: u64,
    /// Sums over the steps. The learning rate is that of the last step.
    sum: StepReport,
    learns_preferences: bool,
}

impl MetricsWindow {
    /// Creates a window without steps.
    pub(crate) fn new(learns_preferences: bool) -> Self {
        Self {
            start: Instant::now(),
            steps: 0,
            steps_with_accuracy: 0,
            sum: StepReport::default(),
            learns_preferences,
        }
    }

    /// Adds a step.
    pub(crate) fn add(&mut self, report: &StepReport) {
        self.steps += 1;
        self.steps_with_accuracy += u64::from(report.accuracy.is_some());
        self.sum = StepReport {
            loss: self.sum.loss + report.loss,
            accuracy: match (self.sum.accuracy, report.accuracy) {
                (Some(sum), Some(accuracy)) => Some(sum + accuracy),
                (sum, accuracy) => sum.or(accuracy),
            },
            rewards: [0, 1].map(|i| self.sum.rewards[i] + report.rewards[i]),
            gradient_norm: self.sum.gradient_norm + report.gradient_norm,
            learning_rate: report.learning_rate,
            tokens: self.sum.tokens + report.tokens,
        };
    }

    /// Describes the mean metrics, the speed and the time for the remaining steps.
    pub(crate) fn describe(&self, remaining_steps: u64) -> String {
        let n = self.steps.max(1) as f64;
        let seconds = self.start.elapsed().as_secs_f64().max(1e-9);
        let sum = &self.sum;
        let (loss, norm) = (sum.loss / n, sum.gradient_norm / n);
        let with_accuracy = self.steps_with_accuracy.max(1) as f64;
        let accuracy = format_accuracy(sum.accuracy.map(|accuracy| accuracy / with_accuracy));
        let rewards = if self.learns_preferences {
            format!(", {}", describe_rewards(sum.rewards.map(|reward| reward / n)))
        } else {
            String::new()
        };
        let speed = sum.tokens as f64 / seconds;
        let minutes = remaining_steps as f64 * seconds / n / 60.0;
        format!(
            "loss {loss:.4}{accuracy}{rewards}, gradient norm {norm:.2}, learning rate {:.2e}, \
             {speed:.0} tokens/s, {minutes:.0} min left",
            sum.learning_rate
        )
    }
}

/// Formats an accuracy that follows a loss; returns an empty string for `None`.
pub(crate) fn format_accuracy(accuracy: Option<f64>) -> String {
    accuracy.map_or(String::new(), |accuracy| format!(", accuracy {accuracy:.4}"))
}

/// Describes the mean rewards of chosen and rejected evaluations. The margin alone does not show
/// whether the chosen evaluations have become less probable.
pub(crate) fn describe_rewards([chosen, rejected]: [f64; 2]) -> String {
    let margin = chosen - rejected;
    format!("margin {margin:.3} (chosen {chosen:+.3}, rejected {rejected:+.3})")
}

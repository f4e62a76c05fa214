//! The figures of a stage in progress: for a person, as JSON lines, and as `TensorBoard` reads them.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use acem3_experts::train::StepReport;
use anyhow::{Context, Result};

use super::tensorboard::Events;

/// Metrics in files.
pub(super) struct Journal {
    lines: File,
    events: Events,
}

impl Journal {
    /// The metrics of a stage, after those that are there already.
    pub(super) fn open(out: &Path, name: &str) -> Result<Self> {
        let path = out.join(format!("{name}.metrics.jsonl"));
        let lines = OpenOptions::new().create(true).append(true).open(&path);
        Ok(Self {
            lines: lines.with_context(|| format!("cannot write {}", path.display()))?,
            events: Events::create(&out.join("tensorboard").join(name))?,
        })
    }

    /// Figures of a step.
    pub(super) fn figures(&mut self, step: u64, figures: &[(&str, f64)]) -> Result<()> {
        let mut line = serde_json::Map::from_iter([("step".to_owned(), step.into())]);
        let values = figures.iter();
        line.extend(values.map(|(name, value)| ((*name).to_owned(), (*value).into())));
        let line = format!("{}\n", serde_json::Value::Object(line));
        // In one piece, so that a kill leaves no half of it.
        self.lines
            .write_all(line.as_bytes())
            .context("cannot write the metrics")?;
        self.events.scalars(step, figures.iter().copied())
    }
}

/// What happened since the last report.
pub(super) struct Window {
    since: Instant,
    steps: u64,
    /// Summed over the steps, but for the rate.
    sum: StepReport,
    /// Whether margins mean anything.
    preferring: bool,
}

impl Window {
    /// A window that nothing happened in. `preferring`: whether preferences are learned.
    pub(super) fn new(preferring: bool) -> Self {
        Self {
            since: Instant::now(),
            steps: 0,
            sum: StepReport::default(),
            preferring,
        }
    }

    /// A step was done.
    pub(super) fn add(&mut self, report: StepReport) {
        self.steps += 1;
        self.sum = StepReport {
            loss: self.sum.loss + report.loss,
            accuracy: match (self.sum.accuracy, report.accuracy) {
                (Some(sum), Some(share)) => Some(sum + share),
                (sum, share) => sum.or(share),
            },
            rewards: [0, 1].map(|side| self.sum.rewards[side] + report.rewards[side]),
            norm: self.sum.norm + report.norm,
            rate: report.rate,
            tokens: self.sum.tokens + report.tokens,
        };
    }

    /// Writes the means, and gives them in words.
    pub(super) fn report(&self, step: u64, left: u64, journal: &mut Journal) -> Result<String> {
        let n = self.steps.max(1) as f64;
        let seconds = self.since.elapsed().as_secs_f64().max(1e-9);
        let sum = &self.sum;
        let (loss, norm) = (sum.loss / n, sum.norm / n);
        let accuracy = sum.accuracy.map(|accuracy| accuracy / n);
        let rewards = self
            .preferring
            .then(|| sum.rewards.map(|reward| reward / n));
        let speed = sum.tokens as f64 / seconds;
        let minutes = left as f64 * seconds / n / 60.0;
        let mut figures = vec![("loss", loss)];
        figures.extend(accuracy.map(|accuracy| ("accuracy", accuracy)));
        figures.extend([
            ("gradient_norm", norm),
            ("rate", sum.rate),
            ("tokens_per_second", speed),
        ]);
        figures.extend(rewards.into_iter().flat_map(of_rewards));
        journal.figures(step, &figures)?;
        let rewards = rewards.map_or(String::new(), |r| format!(", {}", in_words(r)));
        Ok(format!(
            "loss {loss:.4}{}{rewards}, gradient {norm:.2}, rate {:.2e}, \
             {speed:.0} tokens/s, {minutes:.0} min left",
            share(accuracy),
            sum.rate
        ))
    }
}

/// An accuracy behind a loss, where there is one.
pub(super) fn share(accuracy: Option<f64>) -> String {
    accuracy.map_or(String::new(), |share| format!(", accuracy {share:.4}"))
}

/// The mean rewards of preferred and rejected texts as figures.
pub(super) fn of_rewards([preferred, rejected]: [f64; 2]) -> [(&'static str, f64); 3] {
    [
        ("margin", preferred - rejected),
        ("reward_preferred", preferred),
        ("reward_rejected", rejected),
    ]
}

/// The same for a person: where the preferred texts have become unlikely, the margin alone says little.
pub(super) fn in_words([preferred, rejected]: [f64; 2]) -> String {
    let margin = preferred - rejected;
    format!("margin {margin:.3} ({preferred:+.3} over {rejected:+.3})")
}

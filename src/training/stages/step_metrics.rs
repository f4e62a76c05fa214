//! The figures of a stage in progress: for a person, as JSON lines, and as `TensorBoard` reads them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use acem3_experts::train::StepReport;
use anyhow::{Context, Result};
use serde_json::Value;

use super::tensorboard::Events;
use crate::support::files::atomic_file;

/// Metrics in files.
pub(crate) struct MetricsWriter {
    lines: File,
    events: Events,
    /// Whether margins mean anything.
    preferring: bool,
}

impl MetricsWriter {
    /// The metrics of a stage that stands at a step, after those that are there up to it. Those of later steps are of a
    /// run that was killed before its next checkpoint, and come again.
    pub(crate) fn open(out: &Path, name: &str, step: u64, preferring: bool) -> Result<Self> {
        let path = out.join(format!("{name}.metrics.jsonl"));
        forget_after(step, &path)?;
        let lines = OpenOptions::new().create(true).append(true).open(&path);
        Ok(Self {
            lines: lines.with_context(|| format!("cannot write {}", path.display()))?,
            events: Events::create(&out.join("tensorboard").join(name))?,
            preferring,
        })
    }

    /// What a step did, in so much time. Every step has its line, so that a run that was interrupted has those of one that
    /// was not, but for the speed.
    pub(crate) fn step(&mut self, step: u64, report: &StepReport, time: Duration) -> Result<()> {
        let speed = report.tokens as f64 / time.as_secs_f64().max(1e-9);
        let mut figures = vec![("loss", report.loss)];
        figures.extend(report.accuracy.map(|accuracy| ("accuracy", accuracy)));
        figures.extend([
            ("gradient_norm", report.norm),
            ("rate", report.rate),
            ("tokens_per_second", speed),
        ]);
        if self.preferring {
            figures.extend(of_rewards(report.rewards));
        }
        self.figures(step, &figures)
    }

    /// Figures of a step.
    pub(crate) fn figures(&mut self, step: u64, figures: &[(&str, f64)]) -> Result<()> {
        let mut line = serde_json::Map::from_iter([("step".to_owned(), step.into())]);
        let values = figures.iter();
        line.extend(values.map(|(name, value)| ((*name).to_owned(), (*value).into())));
        let line = format!("{}\n", Value::Object(line));
        // In one piece, so that a kill leaves no half of it.
        self.lines
            .write_all(line.as_bytes())
            .context("cannot write the metrics")?;
        self.events.scalars(step, figures.iter().copied())
    }
}

/// Removes the lines of later steps from metrics, and what is no line.
fn forget_after(step: u64, path: &Path) -> Result<()> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let at = |line: &str| serde_json::from_str::<Value>(line).ok()?["step"].as_u64();
    let stays = |line: &&str| at(line).is_some_and(|at| at <= step);
    let kept: String = text.split_inclusive('\n').filter(stays).collect();
    if kept == text {
        return Ok(());
    }
    atomic_file::write(path, kept.as_bytes())
}

/// What happened since the last report.
pub(crate) struct MetricsWindow {
    since: Instant,
    steps: u64,
    /// Summed over the steps, but for the rate.
    sum: StepReport,
    /// Whether margins mean anything.
    preferring: bool,
}

impl MetricsWindow {
    /// A window that nothing happened in. `preferring`: whether preferences are learned.
    pub(crate) fn new(preferring: bool) -> Self {
        Self {
            since: Instant::now(),
            steps: 0,
            sum: StepReport::default(),
            preferring,
        }
    }

    /// A step was done.
    pub(crate) fn add(&mut self, report: &StepReport) {
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

    /// The means in words; so many steps are left.
    pub(crate) fn in_words(&self, left: u64) -> String {
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
        let rewards = rewards.map_or(String::new(), |r| format!(", {}", in_words(r)));
        format!(
            "loss {loss:.4}{}{rewards}, gradient {norm:.2}, rate {:.2e}, \
             {speed:.0} tokens/s, {minutes:.0} min left",
            share(accuracy),
            sum.rate
        )
    }
}

/// An accuracy behind a loss, where there is one.
pub(crate) fn share(accuracy: Option<f64>) -> String {
    accuracy.map_or(String::new(), |share| format!(", accuracy {share:.4}"))
}

/// The mean rewards of preferred and rejected texts as figures.
pub(crate) fn of_rewards([preferred, rejected]: [f64; 2]) -> [(&'static str, f64); 3] {
    [
        ("margin", preferred - rejected),
        ("reward_preferred", preferred),
        ("reward_rejected", rejected),
    ]
}

/// The same for a person: where the preferred texts have become unlikely, the margin alone says little.
pub(crate) fn in_words([preferred, rejected]: [f64; 2]) -> String {
    let margin = preferred - rejected;
    format!("margin {margin:.3} ({preferred:+.3} over {rejected:+.3})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_come_again_stand_there_once() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("sft.metrics.jsonl");
        let mut journal = MetricsWriter::open(dir.path(), "sft", 0, false)?;
        for step in [5, 10, 15] {
            journal.figures(step, &[("loss", 1.0)])?;
        }
        drop(journal);
        let cut = std::fs::read_to_string(&path)? + "{\"step\": 10, \"lo";
        std::fs::write(&path, cut)?;
        MetricsWriter::open(dir.path(), "sft", 10, false)?.figures(15, &[("loss", 0.5)])?;
        let text = std::fs::read_to_string(&path)?;
        let lines: Vec<Value> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let found: Vec<_> = lines.iter().map(|l| (&l["step"], &l["loss"])).collect();
        let value = |x: f64| Value::from(x);
        assert_eq!(
            found,
            [
                (&5.into(), &value(1.0)),
                (&10.into(), &value(1.0)),
                (&15.into(), &value(0.5))
            ]
        );
        Ok(())
    }
}

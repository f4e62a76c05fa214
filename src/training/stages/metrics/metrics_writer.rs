//! Metrics of a stage as JSON lines and for `TensorBoard`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use acem3_experts::train::StepReport;
use anyhow::{Context, Result};
use serde_json::Value;

use super::tensorboard::Events;
use crate::support::files::atomic_file;

/// Writes the metrics of a stage.
pub(crate) struct MetricsWriter {
    lines: File,
    events: Events,
    learns_preferences: bool,
}

impl MetricsWriter {
    /// Opens the metrics of a stage at a step. Removes the lines of later steps, which run again.
    /// Such lines come from a run that was killed before its next checkpoint.
    pub(crate) fn open(
        out: &Path,
        name: &str,
        step: u64,
        learns_preferences: bool,
    ) -> Result<Self> {
        let path = out.join(format!("{name}.metrics.jsonl"));
        remove_lines_after(step, &path)?;
        let lines = OpenOptions::new().create(true).append(true).open(&path);
        Ok(Self {
            lines: lines.with_context(|| format!("cannot write {}", path.display()))?,
            events: Events::create(&out.join("tensorboard").join(name))?,
            learns_preferences,
        })
    }

    /// Writes the metrics of a training step as one line. Interrupted and uninterrupted runs write
    /// equal lines except for the speed.
    pub(crate) fn write_step(
        &mut self,
        step: u64,
        report: &StepReport,
        duration: Duration,
    ) -> Result<()> {
        let speed = report.tokens as f64 / duration.as_secs_f64().max(1e-9);
        let mut values = vec![("loss", report.loss)];
        values.extend(report.accuracy.map(|accuracy| ("accuracy", accuracy)));
        values.extend([
            ("gradient_norm", report.gradient_norm),
            ("rate", report.learning_rate),
            ("tokens_per_second", speed),
        ]);
        if self.learns_preferences {
            let [chosen, rejected] = report.rewards;
            values.extend([
                ("margin", chosen - rejected),
                ("reward_preferred", chosen),
                ("reward_rejected", rejected),
            ]);
        }
        self.write_values(step, &values)
    }

    /// Writes named values of a step.
    pub(crate) fn write_values(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let mut line = serde_json::Map::from_iter([("step".to_owned(), step.into())]);
        line.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        let line = format!("{}\n", Value::Object(line));
        // A single write prevents an incomplete line if the process is killed.
        self.lines.write_all(line.as_bytes()).context("cannot write the metrics")?;
        self.events.write_scalars(step, values.iter().copied())
    }
}

/// Removes the lines of later steps and malformed lines.
fn remove_lines_after(step: u64, path: &Path) -> Result<()> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let line_step = |line: &str| serde_json::from_str::<Value>(line).ok()?["step"].as_u64();
    let is_valid = |line: &&str| line_step(line).is_some_and(|s| s <= step);
    let valid: String = text.split_inclusive('\n').filter(is_valid).collect();
    if valid == text {
        return Ok(());
    }
    atomic_file::write_atomic(path, valid.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_steps_are_logged_once() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("sft.metrics.jsonl");
        let mut metrics = MetricsWriter::open(dir.path(), "sft", 0, false)?;
        for step in [5, 10, 15] {
            metrics.write_values(step, &[("loss", 1.0)])?;
        }
        drop(metrics);
        let torn = std::fs::read_to_string(&path)? + "{\"step\": 10, \"lo";
        std::fs::write(&path, torn)?;
        MetricsWriter::open(dir.path(), "sft", 10, false)?.write_values(15, &[("loss", 0.5)])?;
        let text = std::fs::read_to_string(&path)?;
        let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let values: Vec<_> = lines.iter().map(|l| (&l["step"], &l["loss"])).collect();
        let value = |x: f64| Value::from(x);
        assert_eq!(
            values,
            [(&5.into(), &value(1.0)), (&10.into(), &value(1.0)), (&15.into(), &value(0.5))]
        );
        Ok(())
    }
}

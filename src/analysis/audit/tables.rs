//! An audit as a person reads it: the findings in words, then the figures they rest on.

use std::fmt::Write as _;

use super::result::{AuditMeasure, AuditResult, Finding, FindingOutcome, MeasureUnit};
use crate::analysis::agreement::TableSection;
use crate::analysis::audit::audit_estimate::AuditEstimate;
use crate::support::terminal::table::Table;
use crate::support::text::plural;

impl AuditResult {
    /// What was audited, and every finding in a line.
    pub fn lead(&self) -> String {
        let mut text = format!("{} audited on {}\n", self.judge, self.source);
        let _ = writeln!(
            text,
            "{}, {} unscored, {} labelled{}{}",
            plural(self.pairs as u64, "pair"),
            self.unscored,
            self.labelled,
            match self.unreadable {
                0 => String::new(),
                n => format!("; {n} without a pair to judge"),
            },
            match self.judged {
                0 => String::new(),
                n => format!("; {} for this audit", plural(n as u64, "verdict")),
            },
        );
        let _ = writeln!(
            text,
            "intervals: 95 %, by {} draws of whole images (seed {})\n",
            self.draws, self.seed
        );
        let findings = self
            .probes
            .iter()
            .map(|finding| format!("- {}: {}", finding.probe.key(), finding.told()));
        let limits = self.limits.iter().map(|checked| {
            let lead = if checked.failed { "FAILED: " } else { "" };
            format!("- {lead}{}", checked.words)
        });
        text + &findings.chain(limits).collect::<Vec<_>>().join("\n")
    }

    /// A table for each probe that ran.
    pub fn parts(&self) -> Vec<TableSection> {
        let ran = self
            .probes
            .iter()
            .filter(|f| !f.measures.is_empty() || !f.notes.is_empty());
        ran.map(Finding::part).collect()
    }

    /// Every figure on a line of its own.
    pub fn grid(&self) -> Table {
        let mut grid = Table::new([
            "probe",
            "outcome",
            "measure",
            "unit",
            "value",
            "low",
            "high",
            "n",
            "images",
            "undefined",
            "control_is",
            "control",
            "control_low",
            "control_high",
            "control_n",
            "beyond",
            "beyond_low",
            "beyond_high",
            "beyond_n",
            "finding",
        ]);
        for finding in &self.probes {
            let outcome = word(finding.outcome);
            let probe = finding.probe.key().to_owned();
            if finding.measures.is_empty() {
                let mut row = vec![probe, outcome];
                row.resize(19, String::new());
                row.push(finding.words.clone());
                grid.row(row);
                continue;
            }
            for measure in &finding.measures {
                let mut row = vec![probe.clone(), outcome.clone(), measure.key.clone()];
                row.push(word(measure.unit));
                row.extend(cells(Some(&measure.reading)));
                row.push(measure.reading.images.to_string());
                row.push(measure.reading.undefined.clone().unwrap_or_default());
                row.push(measure.control_title.clone().unwrap_or_default());
                row.extend(cells(measure.control.as_ref()));
                row.extend(cells(measure.beyond.as_ref()));
                row.push(finding.words.clone());
                grid.row(row);
            }
        }
        grid
    }
}

/// The name of a unit variant in files.
fn word(value: impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn cells(reading: Option<&AuditEstimate>) -> [String; 4] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let interval = reading.and_then(|r| r.interval);
    [
        number(reading.and_then(|r| r.value)),
        number(interval.map(|i| i[0])),
        number(interval.map(|i| i[1])),
        reading.map_or_else(String::new, |r| r.n.to_string()),
    ]
}

impl Finding {
    /// How it ended and what was found, in one line.
    pub fn told(&self) -> String {
        match self.outcome {
            FindingOutcome::NotRun => self.words.clone(),
            outcome => format!("{}: {}", outcome.word(), self.words),
        }
    }

    /// Its figures as a table.
    pub fn part(&self) -> TableSection {
        let controlled = self.measures.iter().any(|m| m.control.is_some());
        let mut head = vec![self.probe.key(), "value", "95 % interval", "n"];
        if controlled {
            head.extend([
                "control",
                "95 % interval",
                "n",
                "beyond it",
                "95 % interval",
            ]);
        }
        let mut grid = Table::new(head);
        let mut undefined: Vec<(String, Vec<String>)> = Vec::new();
        let mut controls: Vec<String> = Vec::new();
        for measure in &self.measures {
            grid.row(measure.row(controlled));
            for (what, why) in measure.unknown() {
                match undefined.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, of)) => of.push(what),
                    None => undefined.push((why, vec![what])),
                }
            }
            if let Some(title) = &measure.control_title {
                let known = controls.iter_mut().find(|known| known.as_str() == title);
                if known.is_none() {
                    controls.push(title.clone());
                }
            }
        }
        let said = undefined.into_iter();
        let mut notes: Vec<String> = said
            .map(|(why, of)| format!("undefined: {} ({why})", of.join(", ")))
            .collect();
        if !controls.is_empty() {
            notes.push(format!("control: {}", controls.join("; ")));
        }
        notes.extend(self.notes.iter().cloned());
        TableSection {
            title: format!("{}: {}", self.probe.key(), self.outcome.word()),
            grid,
            notes,
        }
    }
}

impl AuditMeasure {
    /// What of the figure, its control and what is beyond it has no value or no interval, and why.
    fn unknown(&self) -> Vec<(String, String)> {
        let title = self.title.trim();
        let readings = [
            (Some(&self.reading), title.to_owned()),
            (self.control.as_ref(), format!("the control of {title}")),
            (self.beyond.as_ref(), format!("{title} beyond its control")),
        ];
        let known = readings.into_iter().filter_map(|(reading, what)| {
            let reading = reading?;
            let lead = if reading.value.is_some() {
                "interval of "
            } else {
                ""
            };
            Some((format!("{lead}{what}"), reading.undefined.clone()?))
        });
        known.collect()
    }

    fn row(&self, controlled: bool) -> Vec<String> {
        let value = |reading: Option<&AuditEstimate>, unit: MeasureUnit| {
            let value = reading.map(|r| r.value.map(|v| unit.shown(v) + unit.sign()));
            value.map_or("-".to_owned(), |v| {
                v.unwrap_or_else(|| "undefined".to_owned())
            })
        };
        let interval = |reading: Option<&AuditEstimate>, unit: MeasureUnit| {
            let ends = reading.and_then(|r| r.interval);
            ends.map_or("-".to_owned(), |[low, high]| {
                format!("[{}, {}]", unit.shown(low), unit.shown(high))
            })
        };
        let n =
            |reading: Option<&AuditEstimate>| reading.map_or("-".to_owned(), |r| r.n.to_string());
        let own = Some(&self.reading);
        let mut row = vec![
            self.title.clone(),
            value(own, self.unit),
            interval(own, self.unit),
            n(own),
        ];
        if controlled {
            let control = self.control.as_ref();
            row.extend([
                value(control, self.unit),
                interval(control, self.unit),
                n(control),
            ]);
            let unit = match self.unit {
                MeasureUnit::Share => MeasureUnit::ShareDifference,
                unit => unit,
            };
            let beyond = self.beyond.as_ref();
            row.extend([value(beyond, unit), interval(beyond, unit)]);
        }
        row
    }
}

//! An audit as text, tables and CSV.

use std::fmt::Write as _;

use super::result::{
    AuditMeasure, AuditResult, Finding, FindingOutcome, MeasureUnit, ThresholdResult,
};
use crate::analysis::audit::result::AuditEstimate;
use crate::analysis::verdicts::caption::interval_caption;
use crate::support::tables::{Reasons, Table, TableSection};
use crate::support::terminal::number::{NOT_APPLICABLE, UNDEFINED, format_with_interval};
use crate::support::text::format_count;

impl AuditResult {
    /// Returns the paragraph above the tables: what was audited, and one line per finding and
    /// threshold.
    pub fn intro(&self) -> String {
        let mut text = format!("{} audited on {}\n", self.judge, self.source);
        let _ = writeln!(
            text,
            "{}, {} unscored, {} labelled{}{}",
            format_count(self.pairs as u64, "pair"),
            self.unscored,
            self.labelled,
            match self.unreadable {
                0 => String::new(),
                n => format!("; {} unreadable", format_count(n as u64, "case")),
            },
            match self.judged {
                0 => String::new(),
                n => format!("; {} made for this audit", format_count(n as u64, "verdict")),
            },
        );
        let _ = writeln!(text, "{}\n", interval_caption(self.draws, self.seed));
        let findings = self
            .findings
            .iter()
            .map(|finding| format!("- {}: {}", finding.probe.key(), finding.describe()));
        let limits = self.thresholds.iter().map(ThresholdResult::to_line);
        text + &findings.chain(limits).collect::<Vec<_>>().join("\n")
    }

    /// Returns one table per probe with measures or notes.
    pub fn tables(&self) -> Vec<TableSection> {
        let findings = self.findings.iter();
        findings
            .filter(|f| !f.measures.is_empty() || !f.notes.is_empty())
            .map(Finding::table)
            .collect()
    }

    /// Returns one row per measure, and one per probe without measures.
    pub fn csv_table(&self) -> Table {
        let mut table = Table::new([
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
            "p_holm",
            "beyond_p_holm",
        ]);
        for finding in &self.findings {
            let outcome = variant_name(finding.outcome);
            let probe = finding.probe.key().to_owned();
            if finding.measures.is_empty() {
                let mut row = vec![probe, outcome];
                row.resize(19, String::new());
                row.extend([finding.summary.clone(), String::new(), String::new()]);
                table.push_row(row);
                continue;
            }
            for measure in &finding.measures {
                let mut row = vec![probe.clone(), outcome.clone(), measure.key.clone()];
                row.push(variant_name(measure.unit));
                row.extend(csv_cells(Some(&measure.estimate)));
                row.push(measure.estimate.images.to_string());
                row.push(measure.estimate.undefined.clone().unwrap_or_default());
                row.push(measure.control_title.clone().unwrap_or_default());
                row.extend(csv_cells(measure.control.as_ref()));
                row.extend(csv_cells(measure.difference.as_ref()));
                row.push(finding.summary.clone());
                row.extend([Some(&measure.estimate), measure.difference.as_ref()].map(p_cell));
                table.push_row(row);
            }
        }
        table
    }
}

/// Returns the JSON name of an enum variant without fields.
fn variant_name(value: impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns value, interval and n as text; empty without an estimate.
fn csv_cells(estimate: Option<&AuditEstimate>) -> [String; 4] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let interval = estimate.and_then(|r| r.interval);
    [
        number(estimate.and_then(|r| r.value)),
        number(interval.map(|i| i[0])),
        number(interval.map(|i| i[1])),
        estimate.map_or_else(String::new, |r| r.n.to_string()),
    ]
}

/// Returns the corrected p-value as text; empty without a test.
fn p_cell(estimate: Option<&AuditEstimate>) -> String {
    estimate.and_then(|e| e.p_holm).map_or_else(String::new, |p| p.to_string())
}

impl Finding {
    /// Returns the outcome and the finding in one line.
    pub fn describe(&self) -> String {
        match self.outcome {
            FindingOutcome::NotRun => self.summary.clone(),
            outcome => format!("{}: {}", outcome.label(), self.summary),
        }
    }

    /// Returns the statistics of the probe as a table.
    pub fn table(&self) -> TableSection {
        let has_control = self.measures.iter().any(|m| m.control.is_some());
        let mut header = vec![self.probe.key(), "value [95 % CI]", "n"];
        if has_control {
            header.extend(["control [95 % CI]", "n", "net of control [95 % CI]"]);
        }
        let mut table = Table::new(header);
        let (mut no_value, mut no_interval) = (Reasons::default(), Reasons::default());
        let mut controls: Vec<&str> = Vec::new();
        for measure in &self.measures {
            table.push_row(measure.table_row(has_control));
            for (subject, estimate) in measure.parts() {
                if let Some(reason) = &estimate.undefined {
                    let has_value = estimate.value.is_some();
                    let reasons = if has_value { &mut no_interval } else { &mut no_value };
                    reasons.add(subject, reason);
                }
            }
            let title = measure.control_title.as_deref();
            controls.extend(title.filter(|title| !controls.contains(title)));
        }
        let mut notes = no_value.undefined_notes();
        notes.extend(no_interval.notes("no interval"));
        if !controls.is_empty() {
            notes.push(format!("control: {}", controls.join("; ")));
        }
        notes.extend(self.notes.iter().cloned());
        let title = format!("{}: {}", self.probe.key(), self.outcome.label());
        TableSection::new(title, table).with_notes(notes)
    }
}

impl AuditMeasure {
    /// Returns the estimate, its control and their difference, as far as there are any, with their
    /// names.
    fn parts(&self) -> impl Iterator<Item = (String, &AuditEstimate)> {
        let title = self.title.trim();
        let parts = [
            (title.to_owned(), Some(&self.estimate)),
            (format!("the control of {title}"), self.control.as_ref()),
            (format!("{title} net of the control"), self.difference.as_ref()),
        ];
        parts.into_iter().filter_map(|(subject, estimate)| Some((subject, estimate?)))
    }

    fn table_row(&self, has_control: bool) -> Vec<String> {
        let missing = || NOT_APPLICABLE.to_owned();
        let n = |estimate: &AuditEstimate| estimate.n.to_string();
        let mut row =
            vec![self.title.clone(), estimate_cell(&self.estimate, self.unit), n(&self.estimate)];
        if has_control {
            let control = self.control.as_ref();
            row.push(control.map_or_else(missing, |c| estimate_cell(c, self.unit)));
            row.push(control.map_or_else(missing, n));
            let unit = self.unit.difference_unit();
            let net = self.difference.as_ref();
            row.push(net.map_or_else(missing, |net| estimate_cell(net, unit)));
        }
        row
    }
}

/// Formats a value with its unit and interval.
fn estimate_cell(estimate: &AuditEstimate, unit: MeasureUnit) -> String {
    let Some(value) = estimate.value else {
        return UNDEFINED.to_owned();
    };
    let interval = estimate.interval.map(|bounds| bounds.map(|bound| unit.format_value(bound)));
    format_with_interval(&(unit.format_value(value) + unit.table_suffix()), interval)
}

//! Findings read from the JSON output of `acem3 audit`.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::analysis::audit;

/// Findings of an audit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportAudit {
    /// Path of the audit file.
    pub file: String,
    /// Judge name, as shown in tables.
    pub judge: String,
    /// Judge hash, as in the records.
    pub judge_hash: String,
    /// True if the report has no judge with this hash (another judge, or other settings).
    pub foreign: bool,
    /// Findings.
    pub findings: Vec<audit::Finding>,
}

impl ReportAudit {
    /// Reads the findings from an audit file. `judges` are the hashes of the judges in the report.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not the JSON of `acem3 audit`.
    pub fn read(path: &Path, judges: &[String]) -> Result<Self> {
        let place = || {
            format!(
                "--audit {}: could not read the audit file\nhint: pass the JSON output of `acem3 audit` (--out \
                 FILE, or --format json)",
                path.display()
            )
        };
        let bytes = std::fs::read(path).with_context(place)?;
        let whole: audit::AuditResult = serde_json::from_slice(&bytes).with_context(place)?;
        let of = |judge: &String| {
            whole.judge_hash.starts_with(judge.as_str()) || judge.starts_with(&whole.judge_hash)
        };
        let foreign = !judges.iter().any(of);
        Ok(Self {
            file: path.display().to_string(),
            judge: whole.judge,
            judge_hash: whole.judge_hash,
            foreign,
            findings: whole.findings,
        })
    }
}

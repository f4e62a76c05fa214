//! Findings read from the JSON output of `acem3 audit`.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::analysis::audit;
use crate::support::files::regular_file;

/// Findings of an audit, as part of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportAudit {
    /// Path of the audit file.
    pub file: String,
    /// Judge name, as shown in tables.
    pub judge: String,
    /// Judge hash, as in the records.
    pub judge_hash: String,
    /// True if the report has no judge with this hash (another judge, or other settings).
    #[serde(rename = "foreign")]
    pub is_foreign: bool,
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
        let context = || {
            format!(
                "--audit {}: could not read the audit file\nhint: pass the JSON output of `acem3 audit` (--out \
                 FILE, or --format json)",
                path.display()
            )
        };
        let bytes = regular_file::read(path).with_context(context)?;
        let audit: audit::AuditResult = serde_json::from_slice(&bytes).with_context(context)?;
        let is_audited = |judge: &String| {
            audit.judge_hash.starts_with(judge.as_str()) || judge.starts_with(&audit.judge_hash)
        };
        let is_foreign = !judges.iter().any(is_audited);
        Ok(Self {
            file: path.display().to_string(),
            judge: audit.judge,
            judge_hash: audit.judge_hash,
            is_foreign,
            findings: audit.findings,
        })
    }

    /// Returns a note if the audit is of a judge that is not in the report.
    pub(super) fn foreign_note(&self) -> &'static str {
        if self.is_foreign { " (a judge or configuration that is not in this report)" } else { "" }
    }
}

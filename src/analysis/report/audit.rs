//! What `acem3 audit` found, read back.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::analysis::audit;

/// The findings of an audit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportAudit {
    /// The file they are from.
    pub file: String,
    /// The judge, as it is called in tables.
    pub judge: String,
    /// The hash of its provenance, as records have it.
    pub judge_hash: String,
    /// Whether it is none of the page's: another one, or the same with other settings.
    pub foreign: bool,
    /// The findings.
    pub findings: Vec<audit::Finding>,
}

impl ReportAudit {
    /// Reads the findings of a file that `acem3 audit` wrote; `judges` are the hashes of those on the page.
    ///
    /// # Errors
    ///
    /// If it is no such file.
    pub fn read(path: &Path, judges: &[String]) -> Result<Self> {
        let place = || {
            format!(
                "--audit {} cannot be read\nhint: expected the JSON of `acem3 audit` (--out FILE, or \
                 --format json)",
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
            findings: whole.probes,
        })
    }
}

//! Row types: the fields that a reader needs from each record.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

use crate::judging::run::record::{Record, RecordOutcome, SCHEMA};

/// Row type of a record reader: the fields to read from a record.
pub trait RecordRow: DeserializeOwned {
    /// Returns the schema version of the record.
    fn schema(&self) -> u32;

    /// Returns the fields that every row has.
    fn identity(&self) -> RowIdentity<'_>;
}

/// Judge, case and state of a record.
#[derive(Clone, Copy, Debug)]
pub struct RowIdentity<'a> {
    /// Hash of the judge.
    pub judge: &'a str,
    /// Id of the case; `None` if unreadable.
    pub case: Option<&'a str>,
    /// Line of the case in its source.
    pub line: u64,
    /// True if the record has a verdict.
    pub is_judged: bool,
    /// True if the record reports an input problem that affects no verdict.
    pub is_noted: bool,
}

impl RecordRow for Record {
    fn schema(&self) -> u32 {
        self.schema
    }

    fn identity(&self) -> RowIdentity<'_> {
        RowIdentity {
            judge: &self.subject.judge,
            case: self.subject.case.as_deref(),
            line: self.subject.line,
            is_judged: self.verdict().is_some(),
            is_noted: matches!(self.outcome, RecordOutcome::Noted { .. }),
        }
    }
}

impl RowIdentity<'_> {
    /// Returns a hash of the case; `None` if the record does not count as one of its case.
    pub(super) fn hash_case(&self) -> Option<u64> {
        if self.is_noted {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        match self.case {
            Some(case) => case.hash(&mut hasher),
            None => self.line.hash(&mut hasher),
        }
        Some(hasher.finish())
    }
}

/// Parses a line of records. `path` and `number` appear in errors.
///
/// # Errors
///
/// If it is not a record, or has a newer schema.
pub fn parse_line<R: RecordRow>(path: &Path, number: u64, line: &str) -> Result<R> {
    let location = || format!("{} line {number}", path.display());
    let row: R = serde_json::from_str(line).with_context(|| {
        let hint = "hint: expected the records.jsonl that `acem3 judge --out` wrote";
        format!("{}: not a record\n{hint}", location())
    })?;
    if row.schema() > SCHEMA {
        bail!(
            "{}: written by a newer version of acem3 (schema {}, expected at most {SCHEMA})\n\
             hint: update acem3",
            location(),
            row.schema()
        );
    }
    Ok(row)
}

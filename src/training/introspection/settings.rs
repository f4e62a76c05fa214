//! Settings that all rounds of a run have in common, on disk.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::discussion::discussion_log::Discussants;
use crate::support::files::atomic_file;

/// Settings of a run. A resumed run must have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IntrospectionSettings {
    /// Name of the adviser, with the digest of its knowledge.
    adviser: String,
    /// Name of the reviewer, if there is one.
    #[serde(default)]
    reviewer: Option<String>,
    /// True if each round continues with the panel of the round before.
    #[serde(rename = "continue")]
    continues: bool,
}

impl IntrospectionSettings {
    /// Creates the settings.
    pub(super) fn new(discussants: Discussants, continues: bool) -> Self {
        let Discussants { adviser, reviewer } = discussants;
        Self { adviser, reviewer, continues }
    }

    /// Writes the settings, or checks that they are equal to those of an earlier run.
    ///
    /// # Errors
    /// If the earlier run has other settings, or the file cannot be read or written.
    pub(super) fn write_or_check(&self, path: &Path) -> Result<()> {
        let Ok(text) = std::fs::read_to_string(path) else {
            let text = serde_json::to_string_pretty(self).context("cannot write the settings")?;
            return atomic_file::write_atomic(path, (text + "\n").as_bytes());
        };
        let earlier: Self = serde_json::from_str(&text)
            .with_context(|| format!("{}: malformed\nhint: delete the file", path.display()))?;
        let none = || "none".to_owned();
        let or_none = |name: &Option<String>| name.clone().unwrap_or_else(none);
        let differences = [
            ("the adviser", earlier.adviser.clone(), self.adviser.clone()),
            ("the reviewer", or_none(&earlier.reviewer), or_none(&self.reviewer)),
            ("--restart", (!earlier.continues).to_string(), (!self.continues).to_string()),
        ];
        match differences.into_iter().find(|(_, was, is)| was != is) {
            None => Ok(()),
            Some((name, was, is)) => bail!(
                "{}: the rounds in this folder have other settings: {name} was {was}, is {is}\n\
                 hint: pass the same flags, or another folder with --out",
                path.display()
            ),
        }
    }
}

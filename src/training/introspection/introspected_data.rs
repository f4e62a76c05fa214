//! The evaluations of a finished run, for trainings that compare them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{ROUNDS_FILE, SETTINGS_FILE, data_file};

/// Evaluations before the first and after the last round of a finished run of knowledge
/// introspection.
pub struct IntrospectedData {
    /// File of the evaluations before the first round.
    pub(crate) first: PathBuf,
    /// File of the evaluations after the last round.
    pub(crate) last: PathBuf,
    /// Number of rounds that changed the evaluations.
    pub(crate) rounds: u32,
    /// True if each round continued with the panel of the round before.
    pub(crate) continues: bool,
}

/// Content of `rounds.json`. Other fields are ignored.
#[derive(Deserialize)]
struct RoundsFile {
    rounds: Vec<RoundEntry>,
}

#[derive(Deserialize)]
struct RoundEntry {
    round: u32,
}

/// Content of `introspection.json`. Other fields are ignored.
#[derive(Default, Deserialize)]
struct SettingsFile {
    #[serde(default, rename = "continue")]
    continues: bool,
}

impl IntrospectedData {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// If the folder is not that of a finished run, or lacks a file of evaluations.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(ROUNDS_FILE);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "--introspection {}: cannot read rounds.json\n\
                 hint: name the folder of `acem3 train introspect`, after it has finished",
                folder.display()
            )
        })?;
        let malformed =
            || format!("{}: not the rounds of `acem3 train introspect`", path.display());
        let rounds: RoundsFile = serde_json::from_str(&text).with_context(malformed)?;
        let last = rounds.rounds.iter().map(|entry| entry.round).max().with_context(malformed)?;
        let settings = std::fs::read_to_string(folder.join(SETTINGS_FILE)).ok();
        let settings = settings.map(|text| serde_json::from_str::<SettingsFile>(&text));
        let settings = settings
            .transpose()
            .with_context(|| format!("{}: malformed introspection.json", folder.display()))?;
        let file = |round: u32| -> Result<PathBuf> {
            let path = data_file(folder, round);
            if !path.is_file() {
                bail!(
                    "{}: missing evaluations of round {round}\n\
                     hint: run `acem3 train introspect` again",
                    path.display()
                );
            }
            std::path::absolute(&path).with_context(|| path.display().to_string())
        };
        Ok(Self {
            first: file(0)?,
            last: file(last)?,
            rounds: last,
            continues: settings.unwrap_or_default().continues,
        })
    }
}

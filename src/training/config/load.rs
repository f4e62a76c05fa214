//! Reads `train.toml`.

use std::path::Path;

use anyhow::{Context, Result};

use super::initial_model::load_initial_model;
use super::train_config::TrainConfig;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::support::files::folder::parent_folder;

impl TrainConfig {
    /// Reads and checks a configuration and the model that it starts from. A model with a hub id comes from
    /// `downloads`.
    ///
    /// # Errors
    /// Name the file, the key or line, and what to change.
    pub fn load(path: &Path, downloads: Downloads) -> Result<(Self, Option<InitialModel>)> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "cannot read the configuration {}\n\
                 hint: see assets/mini/train.toml in the source of this program for an example",
                path.display()
            )
        })?;
        let invalid = || format!("{} is not a training configuration", path.display());
        let mut table: toml::Table = toml::from_str(&text).with_context(invalid)?;
        let start = load_initial_model(&mut table, path, downloads)
            .with_context(|| path.display().to_string())?;
        let mut config: Self = match start {
            // Parsing the text gives errors with line numbers.
            None => toml::from_str(&text)
                .map_err(|e| with_hint(e.into()))
                .with_context(invalid)?,
            Some(_) => parse_table(&table)
                .map_err(with_hint)
                .with_context(invalid)?,
        };
        let base = parent_folder(path)?;
        for stage in &mut config.stages {
            let preferences = stage.preferences.as_mut().and_then(|p| p.file.as_mut());
            let evaluations = stage.evaluations.as_mut().map(|e| &mut e.file);
            for file in preferences.into_iter().chain(evaluations) {
                *file = base.join(&*file);
            }
        }
        config
            .check()
            .map_err(with_hint)
            .with_context(|| path.display().to_string())?;
        Ok((config, start))
    }

    /// Reads and checks a configuration without downloads: `start` is absent or names local files.
    ///
    /// # Errors
    /// Those of [`TrainConfig::load`].
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::load(path, Downloads::default())?.0)
    }
}

/// Parses a configuration with values that follow from its initial model. Line numbers would not match the file, so
/// errors quote the line instead.
fn parse_table(table: &toml::Table) -> Result<TrainConfig> {
    let text = toml::to_string(table).context("cannot write the configuration")?;
    toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..offset].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line..].lines().next().unwrap_or_default();
        anyhow::anyhow!("at `{line}`: {}", error.message())
    })
}

/// Adds a hint to an error that has none.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    let text = format!("{error:#}");
    if text.contains("hint: ") {
        return error;
    }
    anyhow::anyhow!(
        "{}\nhint: correct the configuration; the training has not started",
        text.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_error_quotes_key_with_initial_model() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.toml");
        let text =
            "name = \"a\"\nstart = \"embedded\"\nseed = 1\ntrunk_layers = \"four\"\nstages = []\n";
        std::fs::write(&path, text).unwrap();
        let error = format!("{:#}", TrainConfig::read(&path).unwrap_err());
        assert!(
            error.contains("at `trunk_layers = \"four\"`: invalid type: string"),
            "{error}"
        );
    }
}

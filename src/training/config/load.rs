//! Reads `train.toml`.

use std::path::Path;

use anyhow::{Context, Result};

use super::initial_model::load_initial_model;
use super::reward_tokens::RewardTokens;
use super::train_config::TrainConfig;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::support::files::folder::parent_folder;
use crate::support::files::regular_file;

impl TrainConfig {
    /// Reads and checks a configuration and its initial model. `downloads` loads a model with a hub
    /// id.
    ///
    /// # Errors
    /// Errors name the file, the key or line, and the necessary change.
    pub fn load(path: &Path, downloads: HubDownloads) -> Result<(Self, Option<InitialModel>)> {
        let text = regular_file::read_to_string(path).with_context(|| {
            format!(
                "cannot read the configuration {}\n\
                 hint: see assets/mini/train.toml in the source of this program for an example",
                path.display()
            )
        })?;
        let invalid = || format!("{} is not a training configuration", path.display());
        let mut table: toml::Table =
            toml::from_str(&text).map_err(|e| with_hint(e.into())).with_context(invalid)?;
        let reward_tokens = RewardTokens::of_config(&table).with_context(invalid)?;
        let initial_model = load_initial_model(&mut table, path, downloads)
            .with_context(|| path.display().to_string())?;
        let mut config: Self = match initial_model {
            // Errors from parsing the text contain line numbers.
            None => toml::from_str(&text).map_err(|e| with_hint(e.into())).with_context(invalid)?,
            Some(_) => parse_table(&table).map_err(with_hint).with_context(invalid)?,
        };
        let base = parent_folder(path)?;
        let names = config.judging.resolve(&base).map_err(with_hint);
        let names = names.with_context(|| path.display().to_string())?;
        let tokens_of_start = initial_model.as_ref().map(|model| model.reward_tokens(names));
        config.reward_tokens = reward_tokens
            .resolve(names, &tokens_of_start.unwrap_or_default())
            .with_context(|| path.display().to_string())?;
        for stage in &mut config.stages {
            stage.member_names = names;
            let preference_file = stage.preferences.as_mut().and_then(|p| p.file.as_mut());
            let evaluation_file = stage.evaluations.as_mut().map(|e| &mut e.file);
            for file in preference_file.into_iter().chain(evaluation_file) {
                *file = base.join(&*file);
            }
        }
        config
            .check()
            .and_then(|()| config.check_reward_tokens(&reward_tokens))
            .map_err(with_hint)
            .with_context(|| path.display().to_string())?;
        Ok((config, initial_model))
    }

    /// Reads and checks a configuration without downloads. A hub id as the initial model is an
    /// error.
    ///
    /// # Errors
    /// Returns the errors of [`TrainConfig::load`].
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::load(path, HubDownloads::default())?.0)
    }
}

/// Parses a configuration with the values of its initial model. Errors quote the line, because line
/// numbers would not match the file.
fn parse_table(table: &toml::Table) -> Result<TrainConfig> {
    let text = toml::to_string(table).context("cannot write the configuration")?;
    toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let line_start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line_start..].lines().next().unwrap_or_default();
        anyhow::anyhow!("at `{line}`: {}", error.message())
    })
}

/// Adds a hint to an error without one.
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
        assert!(error.contains("at `trunk_layers = \"four\"`: invalid type: string"), "{error}");
    }

    #[test]
    fn toml_syntax_error_has_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.toml");
        std::fs::write(&path, "seed = = 1\n").unwrap();
        let error = format!("{:#}", TrainConfig::read(&path).unwrap_err());
        assert!(error.contains("at line 1") && error.contains("hint: correct"), "{error}");
    }
}

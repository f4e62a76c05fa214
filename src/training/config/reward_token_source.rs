//! Reads the reward tokens of a training configuration without its model.

use std::path::Path;

use anyhow::{Context, Result};

use super::initial_model::{locate, rubric_of};
use super::reward_tokens::RewardTokens;
use super::start_config::StartConfig;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::checkpoints::panel::members_file::MembersFile;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::support::files::regular_file;

impl RewardTokens {
    /// Reads the tokens of a training configuration. A member that the table `[reward_tokens]` does
    /// not name has those of the panel in `start`, if that is on this machine, else the built-in
    /// ones.
    ///
    /// # Errors
    /// If the configuration or its panel cannot be read, or a token has an unsuitable text.
    pub fn read(path: &Path) -> Result<Self> {
        let text = regular_file::read_to_string(path).with_context(|| {
            format!(
                "cannot read the configuration {}\n\
                 hint: name the configuration of `acem3 train run`",
                path.display()
            )
        })?;
        let config: toml::Table = toml::from_str(&text).with_context(|| {
            format!(
                "{} is not a training configuration\n\
                 hint: name the TOML file of `acem3 train run`",
                path.display()
            )
        })?;
        let location = || path.display().to_string();
        let table = Self::of_config(&config).with_context(location)?;
        let rubric = rubric_of(&config, path).with_context(location)?;
        let names = MemberNames::of_rubric(&rubric).with_context(location)?;
        let base = tokens_of_start(&config, path, names).with_context(location)?;
        let tokens = table.resolve(names, &base).with_context(location)?;
        tokens.check_texts().with_context(location)?;
        Ok(tokens)
    }
}

/// Returns the tokens of the initial panel; the built-in ones without such a panel on this machine.
fn tokens_of_start(config: &toml::Table, path: &Path, names: MemberNames) -> Result<RewardTokens> {
    let Some(start) = config.get("start") else {
        return Ok(RewardTokens::default());
    };
    let start: StartConfig = start.clone().try_into().context("start")?;
    let location = locate(path, &start.model);
    let files = match start.model.as_str() {
        "embedded" => PanelFiles::Embedded,
        _ if !Path::new(&location).exists() => return Ok(RewardTokens::default()),
        _ => PanelFiles::resolve_local("start", &location)?,
    };
    match &files {
        PanelFiles::Embedded | PanelFiles::Folder(_) => {
            let text = files.read(PANEL_FILE)?;
            let spec = std::str::from_utf8(&text).context("not UTF-8").and_then(PanelSpec::parse);
            let spec = spec.with_context(|| files.describe(PANEL_FILE))?;
            let (good, bad) = (spec.completion_prefixes(), spec.rejected_prefixes());
            Ok(RewardTokens::of_panel(names, &good, &bad))
        }
        PanelFiles::Members(path) => {
            let config = MembersFile::read(path)?.prompt_config(path);
            Ok(RewardTokens::of_panel(
                names,
                &config.completion_prefixes,
                &config.rejected_prefixes,
            ))
        }
        PanelFiles::Checkpoint(_) => Ok(RewardTokens::default()),
    }
}

impl InitialModel {
    /// Returns the reward tokens of the members.
    pub(super) fn reward_tokens(&self, names: MemberNames) -> RewardTokens {
        RewardTokens::of_panel(names, &self.completion_prefixes, &self.rejected_prefixes)
    }
}

//! The members file: a TOML file with four members, each a checkpoint folder, a GGUF file, a hub id, an
//! adapter over one of these, or a model that a server runs.

use std::path::{Path, PathBuf};

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{PromptLayout, RubricDetail};
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::files::single_gguf;
use super::member_entry::{EndpointEntry, MemberEntry};
use super::sample_count::SampleCount;
use super::spec::check_analysis_tokens;
use super::trained_forms::TrainedForms;
use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::prompt_config::{MEMBERS, PromptConfig};
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::published::config_json::is_adapter_folder;
use crate::support::files::regular_file;

/// Default token budget of one analysis.
const DEFAULT_ANALYSIS_TOKENS: usize = 128;

/// Content of a members file. Folders are relative to the file; a name without a folder may be a
/// hub id.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MembersFile {
    schema: u32,
    /// The panel's name in tables and records (default: the file name without extension).
    name: Option<String>,
    /// The prompt layout that the members were trained with (default: that of the papers).
    layout: Option<PromptLayout>,
    /// Level of detail of the rubric in prompts (default: full).
    rubric: Option<RubricDetail>,
    /// Token budget of one analysis.
    analysis_tokens: Option<usize>,
    /// True if served members were trained on the prompts of acem3, as those of `acem3 panel export`.
    #[serde(default)]
    trained: bool,
    /// `tokenizer.json` of served members: the server writes the tokens of a local member (vLLM only).
    tokenizer: Option<PathBuf>,
    /// Folder, GGUF file or hub id of the base of members that are adapters and name none (default: the
    /// base that `adapter_config.json` names).
    base: Option<PathBuf>,
    /// Chat template of members that set none.
    dialogue: Option<String>,
    /// Reward token before the text of every member (`"[Good]"`), if they were trained with one.
    reward_token: Option<String>,
    /// Folder or hub id of the vision tower, for checkpoints that do not include it.
    vision_tower: Option<PathBuf>,
    /// Base URL of members that name a model and no endpoint of their own.
    endpoint: Option<String>,
    /// Engine of the endpoints (default: detected).
    engine: Option<String>,
    /// Environment variable with the key of the endpoints.
    api_key_env: Option<String>,
    /// True if no member sees images.
    #[serde(default)]
    text_only: bool,
    /// Fields of the members' `config.json` that acem3 does not know and that do not affect the
    /// computation.
    #[serde(default)]
    ignore_config: Vec<String>,
    members: MemberEntries,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberEntries {
    expression: MemberEntry,
    medical_knowledge: MemberEntry,
    patient_relevance: MemberEntry,
    conclusion: MemberEntry,
}

impl MemberEntries {
    /// Returns the four entries in the order of [`MEMBERS`].
    fn in_member_order(&self) -> [&MemberEntry; 4] {
        [&self.expression, &self.medical_knowledge, &self.patient_relevance, &self.conclusion]
    }
}

impl MembersFile {
    /// Reads and checks the file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text = regular_file::read_to_string(path)
            .with_context(|| format!("{name}: cannot be read"))?;
        check_no_key(&text).with_context(|| name.to_string())?;
        let file: Self =
            toml::from_str(&text).with_context(|| format!("{name}: not a members file"))?;
        if file.schema != 1 {
            bail!("{name}: schema is {}, expected 1", file.schema);
        }
        for (member, entry) in MEMBERS.iter().zip(file.members.in_member_order()) {
            entry.check().with_context(|| format!("{name}: members.{member}"))?;
        }
        if file.trained && file.has_checkpoints() {
            bail!(
                "{name}: trained = true is for served members, and a member is a checkpoint\n\
                 hint: remove `trained`; a panel that acem3 trained is the folder `panel`"
            );
        }
        let tokens = file.analysis_tokens.unwrap_or(DEFAULT_ANALYSIS_TOKENS);
        check_analysis_tokens(tokens).with_context(|| name.to_string())?;
        Ok(file)
    }

    /// Returns the default prompt configuration.
    pub(crate) fn default_prompt_config(name: String) -> PromptConfig {
        PromptConfig {
            trained_forms: None,
            name,
            layout: PromptLayout::Paper,
            rubric: RubricDetail::Full,
            analysis_tokens: DEFAULT_ANALYSIS_TOKENS,
            samples: SampleCount::ONE,
            finding_end: None,
            completion_prefixes: Vec::new(),
            rejected_prefixes: Vec::new(),
        }
    }

    /// Returns the default prompt configuration of served models. Servers reuse the prefix of prompts, so the
    /// case comes first.
    pub(crate) fn served_prompt_config(name: String) -> PromptConfig {
        PromptConfig { layout: PromptLayout::CaseFirst, ..Self::default_prompt_config(name) }
    }

    /// Returns the prompt configuration.
    pub(crate) fn prompt_config(&self, path: &Path) -> PromptConfig {
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = self.name.clone().or(stem);
        let name = name.unwrap_or_default();
        let default = if self.has_checkpoints() {
            Self::default_prompt_config(name)
        } else {
            Self::served_prompt_config(name)
        };
        PromptConfig {
            trained_forms: self.trained.then(TrainedForms::default),
            layout: self.layout.unwrap_or(default.layout),
            rubric: self.rubric.unwrap_or(default.rubric),
            analysis_tokens: self.analysis_tokens.unwrap_or(default.analysis_tokens),
            completion_prefixes: Vec::from(self.members.in_member_order().map(|entry| {
                let reward_token = entry.table().and_then(|entry| entry.reward_token.as_ref());
                reward_token.or(self.reward_token.as_ref()).cloned().unwrap_or_default()
            })),
            rejected_prefixes: default.rejected_prefixes,
            samples: default.samples,
            finding_end: default.finding_end,
            name: default.name,
        }
    }

    /// Returns true if a member is a checkpoint.
    pub(crate) fn has_checkpoints(&self) -> bool {
        self.members.in_member_order().iter().any(|entry| !entry.is_served())
    }

    /// Returns true if a server runs a member.
    pub(crate) fn has_served_members(&self) -> bool {
        self.members.in_member_order().iter().any(|entry| entry.is_served())
    }

    /// Returns true if a server runs one of these members.
    pub(crate) fn serves_any(&self, members: &[usize]) -> bool {
        let mut entries = self.members.in_member_order().into_iter().enumerate();
        entries.any(|(i, entry)| members.contains(&i) && entry.is_served())
    }

    /// Checks that every member is a checkpoint, for commands that use no server.
    ///
    /// # Errors
    ///
    /// A server runs a member.
    pub(crate) fn check_all_checkpoints(&self, path: &Path) -> Result<()> {
        let entries = MEMBERS.iter().zip(self.members.in_member_order());
        let Some((name, _)) = entries.into_iter().find(|(_, entry)| entry.is_served()) else {
            return Ok(());
        };
        bail!(
            "{}: members.{name}: a server runs it, and this command needs checkpoints\n\
             hint: name a folder for every member; `acem3 judge` and `acem3 audit` also take served \
             members",
            path.display()
        )
    }

    /// Judges the texts alone: no member sees images.
    pub(crate) fn set_text_only(&mut self) {
        self.text_only = true;
    }

    /// Returns the members that are checkpoints, with their indices in [`MEMBERS`], and downloads missing
    /// ones.
    pub(crate) fn sources(
        &self,
        path: &Path,
        downloads: &mut HubDownloads,
    ) -> Result<Vec<(usize, CheckpointSource)>> {
        let base = path.parent().unwrap_or(Path::new(""));
        let mut sources = Vec::new();
        let entries = MEMBERS.iter().zip(self.members.in_member_order());
        for (i, (name, entry)) in entries.enumerate() {
            if !entry.is_served() {
                let source = self.member_source(entry, base, downloads);
                let source =
                    source.with_context(|| format!("{}: members.{name}", path.display()))?;
                sources.push((i, source));
            }
        }
        self.check_base(path, &sources)?;
        Ok(sources)
    }

    /// Returns the members that servers run, in the order of [`MEMBERS`]; `None` for a checkpoint.
    ///
    /// # Errors
    ///
    /// A served member has no endpoint or model.
    pub(crate) fn endpoints(&self, path: &Path) -> Result<Vec<Option<EndpointEntry>>> {
        let entries = MEMBERS.iter().zip(self.members.in_member_order());
        let entries = entries.map(|(name, entry)| {
            let served = entry.is_served().then(|| self.endpoint_entry(entry)).transpose();
            served.with_context(|| format!("{}: members.{name}", path.display()))
        });
        entries.collect()
    }

    fn endpoint_entry(&self, entry: &MemberEntry) -> Result<EndpointEntry> {
        let entry = entry.table().context("expected a table with endpoint and model")?;
        let (Some(url), Some(model)) =
            (entry.endpoint.as_ref().or(self.endpoint.as_ref()), &entry.model)
        else {
            bail!(
                "a served member needs endpoint and model\n\
                 hint: write {{ endpoint = \"http://127.0.0.1:8000/v1\", model = \"NAME\" }}, or \
                 folder = \"FOLDER\" for a checkpoint"
            )
        };
        Ok(EndpointEntry {
            url: url.clone(),
            model: model.clone(),
            engine: entry.engine.clone().or(self.engine.clone()),
            api_key_env: entry.api_key_env.clone().or(self.api_key_env.clone()),
            adapters: entry.adapters.clone(),
            text_only: entry.text_only || self.text_only,
        })
    }

    /// Reads the tokenizer of served members, if the file names one.
    pub(crate) fn tokenizer(&self, path: &Path) -> Result<Option<TextTokenizer>> {
        let Some(name) = &self.tokenizer else {
            return Ok(None);
        };
        let file = path.parent().unwrap_or(Path::new("")).join(name);
        let read = || {
            let json = regular_file::read(&file).context("cannot be read")?;
            Ok::<_, anyhow::Error>(TextTokenizer::parse(&json)?)
        };
        read()
            .with_context(|| format!("{}: tokenizer {}", path.display(), file.display()))
            .map(Some)
    }

    fn member_source(
        &self,
        entry: &MemberEntry,
        folder: &Path,
        downloads: &mut HubDownloads,
    ) -> Result<CheckpointSource> {
        let table = entry.table();
        let tower = table.and_then(|entry| entry.vision_tower.as_ref());
        let tower = match tower.or(self.vision_tower.as_ref()) {
            // A missing tower is reported later, if a member needs it.
            Some(tower) => resolve_member(tower, folder, &FileFilter::Encoder, downloads)?
                .or(Some(folder.join(tower))),
            None => None,
        };
        let dialogue = table.and_then(|entry| entry.dialogue.as_ref());
        Ok(CheckpointSource {
            text_only: self.text_only || table.is_some_and(|entry| entry.text_only),
            chat_template: dialogue.or(self.dialogue.as_ref()).cloned(),
            vision_tower: tower,
            ignore_config: self.ignore_config.clone(),
            ..self.weight_source(entry, folder, downloads)?
        })
    }

    /// Locates the weights of a member: a checkpoint, or an adapter and its base.
    fn weight_source(
        &self,
        entry: &MemberEntry,
        folder: &Path,
        downloads: &mut HubDownloads,
    ) -> Result<CheckpointSource> {
        let model = entry.folder().map(|name| find_member(name, folder, downloads)).transpose()?;
        let adapter =
            entry.adapter().map(|name| find_member(name, folder, downloads)).transpose()?;
        match (model, adapter) {
            (Some(model), Some(adapter)) => CheckpointSource::new(model).with_adapter(adapter),
            (Some(path), None) | (None, Some(path)) => {
                let is_adapter = entry.adapter().is_some() || is_adapter_folder(&path);
                let base = self.base.as_ref().filter(|_| is_adapter);
                let base = base.map(|name| find_member(name, folder, downloads)).transpose()?;
                let path = single_gguf(&path).filter(|_| !is_adapter).unwrap_or(path);
                CheckpointSource::locate(path, base.as_deref(), downloads)
            }
            (None, None) => bail!("expected folder or adapter"),
        }
    }

    /// Checks that the base of adapters is used.
    fn check_base(&self, path: &Path, sources: &[(usize, CheckpointSource)]) -> Result<()> {
        let entries = self.members.in_member_order();
        let takes_base = |(i, source): &(usize, CheckpointSource)| {
            let names_both = entries
                .get(*i)
                .is_some_and(|entry| entry.folder().is_some() && entry.adapter().is_some());
            source.adapter.is_some() && !names_both
        };
        match &self.base {
            Some(base) if !sources.iter().any(takes_base) => bail!(
                "{}: base = {:?} is not used, because no member is an adapter without a base of its \
                 own\nhint: remove base, or name the folders of adapters as members",
                path.display(),
                base.display().to_string()
            ),
            _ => Ok(()),
        }
    }
}

/// Resolves the name of a member, and downloads it if it is a hub id.
///
/// # Errors
///
/// There is no such folder or file.
fn find_member(name: &Path, base: &Path, downloads: &mut HubDownloads) -> Result<PathBuf> {
    let found = resolve_member(name, base, &FileFilter::Panel, downloads)?;
    found.with_context(|| {
        format!(
            "no folder and no .gguf file {}\n\
             hint: use a path relative to the members file, or a hub id owner/name",
            base.join(name).display()
        )
    })
}

/// Resolves a name: a folder or GGUF file relative to `base`, otherwise a folder from the hub.
fn resolve_member(
    name: &Path,
    base: &Path,
    filter: &FileFilter,
    downloads: &mut HubDownloads,
) -> Result<Option<PathBuf>> {
    let local = base.join(name);
    if local.join("panel.toml").is_file() {
        bail!(
            "{}: this folder is a panel of acem3, and a member is one published checkpoint\n\
             hint: judge with the panel alone, --panel FOLDER",
            local.display()
        );
    }
    if local.is_dir() || CheckpointSource::new(local.clone()).is_gguf() {
        return Ok(Some(local));
    }
    let id = name.to_string_lossy();
    let found = downloads.download(&id, filter);
    found.map_err(|error| error.into_error(&id))
}

/// Checks that the file contains no key of a server, because the parser quotes the line of an unknown field.
fn check_no_key(text: &str) -> Result<()> {
    // The parser reports malformed TOML afterwards.
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let members = table.get("members").and_then(toml::Value::as_table);
    let entries = members.into_iter().flat_map(toml::Table::values);
    let tables = [&table].into_iter().chain(entries.filter_map(toml::Value::as_table));
    let mut keys = tables.flat_map(toml::Table::keys);
    match keys.find(|key| ["api_key", "key", "token"].contains(&key.as_str())) {
        Some(key) => bail!(
            "{key}: keys of servers come from the environment only\n\
             hint: remove {key} and write `api_key_env = \"NAME\"` with the name of the variable that has the key"
        ),
        None => Ok(()),
    }
}

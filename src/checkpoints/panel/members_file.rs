//! A small TOML file that names the four members, each a folder with a published checkpoint, a GGUF
//! file, or an id on the hub.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::{Detail, Layout};
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::files::only_gguf;
use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::prompt_config::{MEMBERS, PromptConfig};
use crate::checkpoints::published::CheckpointSource;

/// Most tokens of one analysis where the file does not say.
const ANALYSIS_TOKENS: usize = 128;

/// The file. Folders are relative to it; a name of which there is no folder may be an id on the hub.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MembersFile {
    schema: u32,
    /// The panel's name in tables and records; the file's where absent.
    name: Option<String>,
    /// The prompt layout the members were trained with; the papers' where absent.
    layout: Option<Layout>,
    /// How much of the rubric prompts spell out; all of it where absent.
    rubric: Option<Detail>,
    /// Most tokens of one analysis.
    analysis_tokens: Option<usize>,
    /// How all members are spoken to, where they do not say it themselves.
    dialogue: Option<String>,
    /// What every member's text begins with, where they were trained with reward tokens (`"[Good]"`).
    reward_token: Option<String>,
    /// The vision tower that checkpoints name without bringing it.
    vision_tower: Option<PathBuf>,
    /// Fields of the members' `config.json` that this program does not know and that are known to
    /// change nothing.
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

/// A folder, GGUF file or id, or one with what is particular about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum MemberEntry {
    Folder(PathBuf),
    Described(MemberTable),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberTable {
    #[serde(alias = "file")]
    folder: PathBuf,
    /// Leave the eyes of the checkpoint aside.
    #[serde(default)]
    text_only: bool,
    dialogue: Option<String>,
    reward_token: Option<String>,
    vision_tower: Option<PathBuf>,
}

impl MemberEntries {
    /// The four, in the order of [`MEMBERS`].
    fn all(&self) -> [&MemberEntry; 4] {
        [
            &self.expression,
            &self.medical_knowledge,
            &self.patient_relevance,
            &self.conclusion,
        ]
    }
}

impl MembersFile {
    /// Reads and checks the file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
        let file: Self =
            toml::from_str(&text).with_context(|| format!("{name}: not a panel's file"))?;
        if file.schema != 1 {
            bail!("{name}: schema is {}, expected 1", file.schema);
        }
        if file.analysis_tokens == Some(0) {
            bail!("{name}: analysis_tokens is 0, expected at least 1");
        }
        Ok(file)
    }

    /// How a panel is asked where nobody says it.
    pub(crate) fn default_asking(name: String) -> PromptConfig {
        PromptConfig {
            name,
            layout: Layout::Paper,
            rubric: Detail::Full,
            analysis_tokens: ANALYSIS_TOKENS,
            leads: Default::default(),
        }
    }

    /// How the panel is asked.
    pub(crate) fn asking(&self, path: &Path) -> PromptConfig {
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = self.name.clone().or(stem);
        let default = Self::default_asking(name.unwrap_or_default());
        PromptConfig {
            layout: self.layout.unwrap_or(default.layout),
            rubric: self.rubric.unwrap_or(default.rubric),
            analysis_tokens: self.analysis_tokens.unwrap_or(default.analysis_tokens),
            leads: self.members.all().map(|seat| {
                let own = match seat {
                    MemberEntry::Described(seat) => seat.reward_token.as_ref(),
                    MemberEntry::Folder(_) => None,
                };
                own.or(self.reward_token.as_ref())
                    .cloned()
                    .unwrap_or_default()
            }),
            name: default.name,
        }
    }

    /// The four checkpoints, in order.
    pub(crate) fn sources(
        &self,
        path: &Path,
        downloads: &mut Downloads,
    ) -> Result<Vec<CheckpointSource>> {
        let base = path.parent().unwrap_or(Path::new(""));
        let sources = MEMBERS.iter().zip(self.members.all()).map(|(name, seat)| {
            let source = self.source(seat, base, downloads);
            source.with_context(|| format!("{}: members.{name}", path.display()))
        });
        sources.collect()
    }

    fn source(
        &self,
        seat: &MemberEntry,
        base: &Path,
        downloads: &mut Downloads,
    ) -> Result<CheckpointSource> {
        let Some(folder) = place(seat.folder(), base, &FileFilter::Panel, downloads)? else {
            bail!(
                "there is no folder and no .gguf file {}\n\
                 hint: names are relative to the file that names them; owner/name is an id on the hub",
                base.join(seat.folder()).display()
            )
        };
        let described = match seat {
            MemberEntry::Folder(_) => None,
            MemberEntry::Described(seat) => Some(seat),
        };
        let tower = described.and_then(|seat| seat.vision_tower.as_ref());
        let tower = match tower.or(self.vision_tower.as_ref()) {
            // What is not there is found to be missing where it is needed.
            Some(tower) => {
                place(tower, base, &FileFilter::Encoder, downloads)?.or(Some(base.join(tower)))
            }
            None => None,
        };
        let dialogue = described.and_then(|seat| seat.dialogue.as_ref());
        Ok(CheckpointSource {
            text_only: described.is_some_and(|seat| seat.text_only),
            dialogue: dialogue.or(self.dialogue.as_ref()).cloned(),
            vision_tower: tower,
            ignore_config: self.ignore_config.clone(),
            ..CheckpointSource::plain(only_gguf(&folder).unwrap_or(folder))
        })
    }
}

/// What a name means: a folder or GGUF file beside the file that names it, else a folder from the hub.
fn place(
    name: &Path,
    base: &Path,
    filter: &FileFilter,
    downloads: &mut Downloads,
) -> Result<Option<PathBuf>> {
    let local = base.join(name);
    if local.is_dir() || CheckpointSource::plain(local.clone()).is_gguf() {
        return Ok(Some(local));
    }
    let id = name.to_string_lossy();
    let found = downloads.folder(&id, filter);
    found.with_context(|| format!("{id}: cannot be had"))
}

impl MemberEntry {
    fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::Described(seat) => &seat.folder,
        }
    }
}

//! A member in a members file: a checkpoint, an adapter over one, or a model that a server runs.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A folder, GGUF file or hub id, alone or in a table with settings of the member.
#[derive(Clone, Debug)]
pub(super) enum MemberEntry {
    Folder(PathBuf),
    Table(Box<MemberTable>),
}

/// Reads an entry. The errors about a table name its fields, unlike those of an untagged enum.
struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = MemberEntry;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("a folder, or a table with folder or adapter, or with endpoint and model")
    }

    fn visit_str<E: serde::de::Error>(self, folder: &str) -> Result<MemberEntry, E> {
        Ok(MemberEntry::Folder(folder.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<MemberEntry, A::Error> {
        let table = MemberTable::deserialize(MapAccessDeserializer::new(table))?;
        Ok(MemberEntry::Table(Box::new(table)))
    }
}

impl<'de> Deserialize<'de> for MemberEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

/// Settings of a member: a checkpoint, or a model behind an endpoint.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemberTable {
    #[serde(alias = "file")]
    pub(super) folder: Option<PathBuf>,
    /// Folder of an adapter of PEFT over the checkpoint.
    pub(super) adapter: Option<PathBuf>,
    pub(super) endpoint: Option<String>,
    pub(super) model: Option<String>,
    pub(super) engine: Option<String>,
    pub(super) api_key_env: Option<String>,
    /// Adapters of llama.cpp's server.
    #[serde(default)]
    pub(super) adapters: Vec<AdapterScale>,
    /// True if the member sees no images.
    #[serde(default)]
    pub(super) text_only: bool,
    pub(super) dialogue: Option<String>,
    pub(super) reward_token: Option<String>,
    pub(super) vision_tower: Option<PathBuf>,
}

/// An adapter of llama.cpp's server, with the factor of its weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterScale {
    /// The index of the adapter.
    pub id: u32,
    /// The factor; 0 switches the adapter off.
    pub scale: f32,
}

/// A member that a server runs.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointEntry {
    /// The base URL.
    pub url: String,
    /// The model.
    pub model: String,
    /// The name of the engine; `None` to detect it.
    pub engine: Option<String>,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// The adapters of llama.cpp's server.
    pub adapters: Vec<AdapterScale>,
    /// True if the member sees no images.
    pub text_only: bool,
}

impl MemberEntry {
    /// Returns the folder or file of a checkpoint; `None` for a served member, and for an adapter without
    /// a base of its own.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Table(entry) => entry.folder.as_deref(),
        }
    }

    /// Returns the folder of the adapter, if the entry names one.
    pub(super) fn adapter(&self) -> Option<&Path> {
        self.table().and_then(|entry| entry.adapter.as_deref())
    }

    /// Returns true if a server runs the member.
    pub(super) fn is_served(&self) -> bool {
        self.folder().is_none() && self.adapter().is_none()
    }

    /// Returns the settings; `None` for a folder alone.
    pub(super) fn table(&self) -> Option<&MemberTable> {
        match self {
            Self::Folder(_) => None,
            Self::Table(entry) => Some(entry),
        }
    }

    /// Checks that the settings belong to one kind of member.
    ///
    /// # Errors
    ///
    /// A checkpoint has settings of a served member, or the other way round.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Some(entry) = self.table() else {
            return Ok(());
        };
        let of_server = [
            ("endpoint", entry.endpoint.is_some()),
            ("model", entry.model.is_some()),
            ("engine", entry.engine.is_some()),
            ("api_key_env", entry.api_key_env.is_some()),
            ("adapters", !entry.adapters.is_empty()),
        ];
        let of_checkpoint = [
            ("dialogue", entry.dialogue.is_some()),
            ("vision_tower", entry.vision_tower.is_some()),
        ];
        let first = |settings: &[(&'static str, bool)]| {
            settings.iter().find(|(_, is_set)| *is_set).map(|(name, _)| *name)
        };
        if self.is_served() {
            if let Some(name) = first(&of_checkpoint) {
                bail!(
                    "{name} is a setting of checkpoints, and a server runs this member\n\
                     hint: remove {name}; the server adds its own chat template and encodes images"
                );
            }
        } else if let Some(name) = first(&of_server) {
            let place = if self.folder().is_some() { "folder" } else { "adapter" };
            bail!(
                "the member has {place} and {name}, expected a checkpoint or a served model\n\
                 hint: remove {name}, or remove {place} to use a server"
            );
        }
        Ok(())
    }
}

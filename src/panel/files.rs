//! Where a panel's files are: in a folder, or in this program.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::spec::PANEL_FILE;
use crate::hub::{self, HubFlags, HubStamp};

/// The embedded panel, file by file.
const EMBEDDED: &[(&str, &[u8])] = &[
    ("panel.toml", include_bytes!("../../assets/mini/panel.toml")),
    (
        "tokenizer.json",
        include_bytes!("../../assets/mini/tokenizer.json"),
    ),
    (
        "trunk.safetensors",
        include_bytes!("../../assets/mini/trunk.safetensors"),
    ),
    (
        "expression.safetensors",
        include_bytes!("../../assets/mini/expression.safetensors"),
    ),
    (
        "medical_knowledge.safetensors",
        include_bytes!("../../assets/mini/medical_knowledge.safetensors"),
    ),
    (
        "patient_relevance.safetensors",
        include_bytes!("../../assets/mini/patient_relevance.safetensors"),
    ),
    (
        "conclusion.safetensors",
        include_bytes!("../../assets/mini/conclusion.safetensors"),
    ),
];

/// A panel's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PanelFiles {
    /// The panel inside the program.
    Embedded,
    /// A folder with a `panel.toml`.
    Folder(PathBuf),
}

impl PanelFiles {
    /// The files that `--panel` names, downloaded from the hub where it is an id there; and what was
    /// taken from the hub.
    pub fn locate(
        panel: Option<&str>,
        flags: &HubFlags,
        quiet: bool,
    ) -> Result<(Self, Vec<HubStamp>)> {
        let found = panel.map(|panel| hub::panel(panel, flags, quiet));
        let found = found
            .transpose()
            .with_context(|| format!("--panel {}: cannot be had", panel.unwrap_or_default()))?;
        match found.flatten() {
            Some(snapshot) => {
                let folder = snapshot.folder.display().to_string();
                Ok((Self::find(Some(&folder))?, vec![snapshot.stamp]))
            }
            None => Ok((Self::find(panel)?, Vec::new())),
        }
    }

    /// The files that `--panel` names, or the embedded ones.
    pub fn find(panel: Option<&str>) -> Result<Self> {
        let Some(panel) = panel else {
            return Ok(Self::Embedded);
        };
        let folder = Path::new(panel);
        if !folder.is_dir() {
            bail!(
                "--panel {panel}: there is no such folder\n\
                 hint: name a folder with a {PANEL_FILE}, or leave --panel out for the embedded panel"
            );
        }
        if !folder.join(PANEL_FILE).is_file() {
            bail!(
                "--panel {panel}: it holds no {PANEL_FILE}\n\
                 hint: a panel is what `acem3 train` writes into its folder `panel`"
            );
        }
        Ok(Self::Folder(folder.to_owned()))
    }

    /// The bytes of a file.
    pub fn read(&self, name: &str) -> Result<Cow<'static, [u8]>> {
        match self {
            Self::Embedded => {
                let found = EMBEDDED.iter().find(|(known, _)| *known == name);
                let (_, bytes) =
                    found.with_context(|| format!("the embedded panel has no {name}"))?;
                Ok(Cow::Borrowed(bytes))
            }
            Self::Folder(folder) => {
                let path = folder.join(name);
                let bytes = std::fs::read(&path)
                    .with_context(|| format!("{}: cannot be read", path.display()))?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// The file as messages name it.
    pub fn describe(&self, name: &str) -> String {
        match self {
            Self::Embedded => format!("embedded {name}"),
            Self::Folder(folder) => folder.join(name).display().to_string(),
        }
    }
}

//! Location of a panel's files: a folder, a file, or the embedded panel.

use crate::support::files::regular_file;
use std::borrow::Cow;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::spec::PANEL_FILE;
use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::published::config_json::{
    ADAPTER_CONFIG_FILE, CONFIG_FILE, is_adapter_folder, is_gguf,
};

/// Files of the embedded panel: name and content.
const EMBEDDED_FILES: &[(&str, &[u8])] = &[
    ("panel.toml", include_bytes!("../../../assets/mini/panel.toml")),
    ("limits.toml", include_bytes!("../../../assets/mini/limits.toml")),
    ("tokenizer.json", include_bytes!("../../../assets/mini/tokenizer.json")),
    ("trunk.safetensors", include_bytes!("../../../assets/mini/trunk.safetensors")),
    ("expression.safetensors", include_bytes!("../../../assets/mini/expression.safetensors")),
    (
        "medical_knowledge.safetensors",
        include_bytes!("../../../assets/mini/medical_knowledge.safetensors"),
    ),
    (
        "patient_relevance.safetensors",
        include_bytes!("../../../assets/mini/patient_relevance.safetensors"),
    ),
    ("conclusion.safetensors", include_bytes!("../../../assets/mini/conclusion.safetensors")),
];

/// Location of a panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PanelFiles {
    /// The panel embedded in the program.
    Embedded,
    /// A folder with a `panel.toml`.
    Folder(PathBuf),
    /// A members file: a TOML file with the checkpoints of the four members.
    Members(PathBuf),
    /// One published checkpoint for all four members: a folder, a GGUF file, or the folder of an adapter
    /// whose base is known.
    Checkpoint(PathBuf),
}

impl PanelFiles {
    /// Locates the panel of `--panel`, and downloads it if it is a hub id. Returns the embedded
    /// panel if the flag is absent.
    pub fn locate(panel: Option<&str>, downloads: &mut HubDownloads) -> Result<Self> {
        match panel {
            Some(panel) => Self::resolve("--panel", panel, downloads),
            None => Ok(Self::Embedded),
        }
    }

    /// Locates a panel or checkpoint, and downloads it if it is a hub id. `setting`: the flag or
    /// TOML key for error messages.
    pub fn resolve(setting: &str, panel: &str, downloads: &mut HubDownloads) -> Result<Self> {
        if Path::new(panel).exists() {
            return Self::resolve_local(setting, panel);
        }
        let folder = downloads.download(panel, &FileFilter::Panel);
        let folder = folder.map_err(|error| error.into_error(&format!("{setting} {panel}")))?;
        match folder {
            Some(folder) => Self::resolve_local(setting, &folder.display().to_string()),
            None => Self::resolve_local(setting, panel),
        }
    }

    /// Locates a panel or checkpoint on this machine.
    pub(crate) fn resolve_local(setting: &str, panel: &str) -> Result<Self> {
        let path = Path::new(panel);
        if path.is_file() && path.extension().is_some_and(|e| e == "toml") {
            return Ok(if path.file_name().is_some_and(|name| name == PANEL_FILE) {
                Self::Folder(path.parent().map(Path::to_owned).unwrap_or_default())
            } else {
                Self::Members(path.to_owned())
            });
        }
        if path.is_file() && is_gguf(path) {
            return Ok(Self::Checkpoint(path.to_owned()));
        }
        if !path.is_dir() {
            let problem = if path.exists() {
                "is a file, expected .toml, .gguf or a folder"
            } else if path.extension().is_some_and(|e| e == "toml" || e == "gguf") {
                "no such file"
            } else {
                "no such folder"
            };
            if lacks_scheme(panel) {
                bail!(
                    "{setting} {panel}: {problem}\nhint: to judge with a server, pass http://{panel}"
                );
            }
            let embedded = match setting {
                "--panel" => "; omit --panel to use the embedded panel",
                "start" => "; `start = \"embedded\"` is the embedded panel",
                _ => "",
            };
            bail!(
                "{setting} {panel}: {problem}\n\
                 hint: pass a folder with a {PANEL_FILE}, the folder or .gguf file of a published \
                 checkpoint, or a .toml file with four members{embedded}"
            );
        }
        if path.join(PANEL_FILE).is_file() {
            return Ok(Self::Folder(path.to_owned()));
        }
        if is_adapter_folder(path) {
            return Ok(Self::Checkpoint(path.to_owned()));
        }
        if let Some(only) = single_gguf(path) {
            return Ok(Self::Checkpoint(only));
        }
        if path.join(CONFIG_FILE).is_file() {
            return Ok(Self::Checkpoint(path.to_owned()));
        }
        bail!(
            "{setting} {panel}: not a panel, expected {PANEL_FILE}, {CONFIG_FILE}, \
             {ADAPTER_CONFIG_FILE} or a single .gguf file\n\
             hint: pass the folder `panel` that `acem3 train` writes, or a checkpoint with \
             {CONFIG_FILE}, weights and tokenizer"
        );
    }

    /// Returns true if the panel has a file with this name. Published checkpoints have no files of
    /// this program.
    pub(crate) fn contains(&self, name: &str) -> bool {
        match self {
            Self::Embedded => EMBEDDED_FILES.iter().any(|(known, _)| *known == name),
            Self::Folder(_) => self.path(name).exists(),
            Self::Members(_) | Self::Checkpoint(_) => false,
        }
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Result<Cow<'static, [u8]>> {
        match self {
            Self::Embedded => {
                let found = EMBEDDED_FILES.iter().find(|(known, _)| *known == name);
                let (_, bytes) =
                    found.with_context(|| format!("the embedded panel has no {name}"))?;
                Ok(Cow::Borrowed(bytes))
            }
            Self::Folder(_) | Self::Members(_) | Self::Checkpoint(_) => {
                let path = self.path(name);
                let bytes = regular_file::read(&path)
                    .with_context(|| format!("{}: cannot be read", path.display()))?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// Opens a file. Also returns its length in bytes.
    pub(crate) fn open(&self, name: &str) -> Result<(Box<dyn Read + Send>, u64)> {
        if *self == Self::Embedded {
            let bytes = self.read(name)?;
            let len = bytes.len() as u64;
            return Ok((Box::new(std::io::Cursor::new(bytes)), len));
        }
        let path = self.path(name);
        let open = || {
            let file = regular_file::open(&path)?;
            let len = file.metadata()?.len();
            Ok::<_, std::io::Error>((file, len))
        };
        let (file, len) = open().with_context(|| format!("{}: cannot be read", path.display()))?;
        Ok((Box::new(BufReader::new(file)), len))
    }

    fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Embedded => PathBuf::from(name),
            Self::Folder(folder) | Self::Checkpoint(folder) => folder.join(name),
            Self::Members(file) => file.with_file_name(name),
        }
    }

    /// Returns the name of a file for messages.
    pub fn describe(&self, name: &str) -> String {
        match self {
            Self::Embedded => format!("embedded {name}"),
            Self::Folder(_) | Self::Members(_) | Self::Checkpoint(_) => {
                self.path(name).display().to_string()
            }
        }
    }
}

/// Returns the GGUF file of a folder if it is the only weight file.
pub(crate) fn single_gguf(folder: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(folder).ok()?.flatten().map(|e| e.path());
    let has_extension =
        |path: &PathBuf, extension: &str| path.extension().is_some_and(|e| e == extension);
    let is_weights =
        |path: &PathBuf| has_extension(path, "safetensors") || has_extension(path, "bin");
    let weight_files: Vec<PathBuf> = paths.filter(|p| is_gguf(p) || is_weights(p)).collect();
    match weight_files.as_slice() {
        [only] if is_gguf(only) => Some(only.clone()),
        _ => None,
    }
}

/// Returns true if a name looks like the URL of a server without `http://`, such as `localhost:8000/v1`.
fn lacks_scheme(name: &str) -> bool {
    let host = name.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

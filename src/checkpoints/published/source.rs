//! Where a published checkpoint is, and how to read it.

use std::path::PathBuf;

use super::config_json::is_gguf;

/// Path of a checkpoint, with the settings of the members file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointSource {
    /// The folder, or the GGUF file.
    pub folder: PathBuf,
    /// Whether to ignore its vision tower.
    pub text_only: bool,
    /// Chat template, if not the default of the model type.
    pub dialogue: Option<String>,
    /// The folder of its vision tower, if the checkpoint does not include one.
    pub vision_tower: Option<PathBuf>,
    /// Configuration fields to ignore.
    pub ignore_config: Vec<String>,
}

impl CheckpointSource {
    /// A checkpoint with default settings.
    pub(crate) fn plain(folder: PathBuf) -> Self {
        Self {
            folder,
            text_only: false,
            dialogue: None,
            vision_tower: None,
            ignore_config: Vec::new(),
        }
    }

    /// Whether the checkpoint is a GGUF file.
    pub(crate) fn is_gguf(&self) -> bool {
        is_gguf(&self.folder) && self.folder.is_file()
    }
}

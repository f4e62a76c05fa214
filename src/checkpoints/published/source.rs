//! Location and settings of a published checkpoint.

use std::path::PathBuf;

use super::config_json::is_gguf;

/// Path of a checkpoint, with the settings of the members file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointSource {
    /// The folder, or the GGUF file.
    pub path: PathBuf,
    /// The folder of an adapter of PEFT over this checkpoint.
    pub adapter: Option<PathBuf>,
    /// True to ignore its vision tower.
    pub text_only: bool,
    /// Chat template, if not the default of the model type.
    pub chat_template: Option<String>,
    /// The folder of its vision tower, if the checkpoint does not include one.
    pub vision_tower: Option<PathBuf>,
    /// Configuration fields to ignore.
    pub ignore_config: Vec<String>,
}

impl CheckpointSource {
    /// Creates a source with default settings.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            path: folder,
            adapter: None,
            text_only: false,
            chat_template: None,
            vision_tower: None,
            ignore_config: Vec::new(),
        }
    }

    /// Returns true if the checkpoint is a GGUF file.
    pub(crate) fn is_gguf(&self) -> bool {
        is_gguf(&self.path) && self.path.is_file()
    }
}

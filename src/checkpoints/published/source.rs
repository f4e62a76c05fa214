//! Where a published checkpoint is, and how to read it.

use std::path::PathBuf;

use super::config_json::is_gguf;

/// A checkpoint's folder, and what a panel's file says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointSource {
    /// The folder, or the GGUF file.
    pub folder: PathBuf,
    /// Leave its eyes aside.
    pub text_only: bool,
    /// How it is spoken to, where not as its kind is.
    pub dialogue: Option<String>,
    /// The folder of its vision tower, where it does not bring one.
    pub vision_tower: Option<PathBuf>,
    /// Fields of its configuration that are known to change nothing.
    pub ignore_config: Vec<String>,
}

impl CheckpointSource {
    /// A folder of which nothing is said.
    pub(crate) fn plain(folder: PathBuf) -> Self {
        Self {
            folder,
            text_only: false,
            dialogue: None,
            vision_tower: None,
            ignore_config: Vec::new(),
        }
    }

    /// Whether it is one GGUF file.
    pub(crate) fn is_gguf(&self) -> bool {
        is_gguf(&self.folder) && self.folder.is_file()
    }
}

//! What the rows of a file share: its images and its data set.

use std::path::Path;

use crate::data::imports::image_value::ImageFolders;

use super::vlm_images::VlmImages;

/// Shared state of the rows of one file.
#[derive(Debug, Default)]
pub(crate) struct RowContext {
    /// Where the images are.
    pub(crate) folders: ImageFolders,
    /// Prefix of the ids: the task of a file with numbered rows.
    pub(crate) task: Option<String>,
    /// Images of a data set of VLMEvalKit.
    pub(super) vlm_images: VlmImages,
    /// The answer filter of lm-evaluation-harness whose rows are read.
    pub(super) filter: Option<String>,
    /// Instructions at the end of questions that are cut off.
    pub(crate) post_prompts: Vec<String>,
}

impl RowContext {
    /// Creates the context of a file.
    pub(crate) fn new(folders: ImageFolders, task: Option<String>, dataset: Option<&str>) -> Self {
        let vlm_images = VlmImages::new(folders.named.as_deref(), dataset);
        Self { folders, task, vlm_images, ..Self::default() }
    }

    /// Creates the context of a data set of VLMEvalKit.
    pub(crate) fn of_questions(folders: ImageFolders, table: &Path) -> Self {
        let vlm_images = VlmImages::of_table(table, folders.named.as_deref());
        Self { folders, vlm_images, ..Self::default() }
    }

    /// Returns an id with the task.
    pub(super) fn task_id(&self, id: &str) -> String {
        self.task.as_ref().map_or(id.to_owned(), |task| format!("{task}-{id}"))
    }
}

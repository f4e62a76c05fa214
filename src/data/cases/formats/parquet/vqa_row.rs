//! One row of a Parquet file of questions.

use std::sync::Arc;

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct VqaRow {
    /// The encoded image.
    pub(crate) image: Option<Arc<[u8]>>,
    /// Name of the image in the data set.
    pub(crate) path: Option<String>,
    /// The question.
    pub(crate) question: String,
    /// The answer, if the column exists.
    pub(crate) answer: Option<String>,
}

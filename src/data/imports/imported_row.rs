//! One row of an imported file: a question, answers, or both.

use serde_json::{Map, Value};

use super::image_value::ImportedImageKey;
use crate::data::cases::case::ImageSource;

/// End of the note on a row whose image the file leaves out.
pub(crate) const WITHOUT_IMAGE: &str = "the case is judged without an image\n\
    hint: add the images of the data set with `acem3 data import --questions`";

/// The answer of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportedAnswer {
    /// The model, if the row names it; otherwise the file does.
    pub(crate) model: Option<String>,
    /// The text, possibly empty.
    pub(crate) text: String,
}

/// A row with what its layout tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ImportedRow {
    /// Id of the case; `None` if its position in the file is the id.
    pub(crate) id: Option<String>,
    /// The image, if any.
    pub(crate) image: Option<ImageSource>,
    /// What tells the image from that of another row, if images are not looked up.
    pub(crate) image_key: Option<ImportedImageKey>,
    /// Why the row has no image although its layout has images.
    pub(crate) image_problem: Option<String>,
    /// A problem that affects no verdict.
    pub(crate) note: Option<String>,
    /// Why the server gave no answer to a request.
    pub(crate) failure: Option<String>,
    /// The question; `None` in files of answers alone.
    pub(crate) question: Option<String>,
    /// The reference answer, if known.
    pub(crate) reference: Option<String>,
    /// The answers.
    pub(crate) answers: Vec<ImportedAnswer>,
    /// Subgroup fields.
    pub(crate) meta: Map<String, Value>,
}

impl ImportedRow {
    /// Sets the image, or the reason why there is none.
    pub(crate) fn set_image(&mut self, image: Result<Option<ImageSource>, String>) {
        match image {
            Ok(image) => self.image = image,
            Err(problem) => self.image_problem = Some(problem),
        }
    }
}

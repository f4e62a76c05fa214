//! A case as read from its file, before answers are attached.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::case::{Case, ImageSource, InputProblem};

/// A case as read from its file, before answers are attached.
pub(crate) struct Draft {
    /// The case with the responses of its own file, often none.
    pub(crate) case: Case,
    /// Ids under which answers files may refer to it.
    pub(crate) keys: Vec<String>,
    /// File of the case.
    pub(crate) file: Arc<Path>,
    /// Problems in fields that the judge does not see. These fields are left out.
    pub(crate) field_problems: Vec<String>,
    /// True if the language of the question is selected.
    pub(crate) is_selected: bool,
}

/// The stream of drafts of a reader.
pub(crate) type Drafts = Box<dyn Iterator<Item = Result<Draft, InputProblem>> + Send>;

/// A row of a data set or table: a question without responses.
pub(crate) struct QuestionRow {
    /// Id of the case.
    pub(crate) id: String,
    /// Other ids under which answers files may refer to it.
    pub(crate) other_keys: Vec<String>,
    /// The image, if any.
    pub(crate) image: Option<ImageSource>,
    /// The question.
    pub(crate) question: String,
    /// The reference answer, if known.
    pub(crate) reference: Option<String>,
    /// Subgroup fields.
    pub(crate) meta: Map<String, Value>,
    /// Line or row in the file, from 1.
    pub(crate) line: u64,
}

impl Draft {
    /// Creates the draft of a case whose responses are in answers files.
    pub(crate) fn from_question(row: QuestionRow, file: &Arc<Path>) -> Self {
        let mut keys = row.other_keys;
        keys.push(row.id.clone());
        let case = Case {
            id: row.id,
            image: row.image,
            question: row.question,
            responses: Vec::new(),
            reference: row.reference,
            labels: None,
            meta: row.meta,
            extra: Map::new(),
            line: row.line,
        };
        Self { case, keys, file: Arc::clone(file), field_problems: Vec::new(), is_selected: true }
    }
}

//! How the first free text of a task begins, for example with a finding.

use std::sync::Arc;

/// The opening of the first free text of a task. It ends with a given text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Text at which the opening ends, for example a semicolon.
    pub end: Arc<str>,
    /// Tokens that the model has to write; `None` if it writes the most probable ones.
    pub tokens: Option<Arc<[u32]>>,
}

/// The opening of a finished text.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenOpening {
    /// Its tokens.
    pub tokens: Arc<[u32]>,
    /// Natural logarithm of its probability after the prompt.
    pub log_probability: f64,
}

//! How the first free text of a task begins, for example with a finding.

use std::sync::Arc;

/// The start of the first free text of a task, up to a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The marker that ends the opening.
    pub end: Arc<str>,
    /// Tokens of the opening; `None` for the most probable ones.
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

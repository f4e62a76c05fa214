//! Flags of a chat endpoint, for messages.

/// Names of the flags and of the variable that select a model behind an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatFlags {
    /// Flag of the URL.
    pub source: &'static str,
    /// Flag of the model.
    pub model: &'static str,
    /// Environment variable with the key.
    pub key_variable: String,
}

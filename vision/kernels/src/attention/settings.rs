//! Settings of an attention.

/// Settings of an attention.
#[derive(Clone, Copy, Debug)]
pub struct AttentionSettings {
    /// Factor of the scores.
    pub scale: f32,
    /// Number of tokens that a query attends to, besides the later ones of its bidirectional range: itself and those
    /// directly before it; at least 1. `None` for all.
    pub window: Option<usize>,
}

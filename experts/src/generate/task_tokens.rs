//! Number of tokens that a task may take.

use super::memory::TaskMemory;

/// Number of tokens that a task may take.
pub(super) struct TaskTokens {
    /// Prompt, with the tokens of its image.
    pub(super) prompt: usize,
    /// Evidence for questions in one evaluation. It gets what the context has left.
    pub(super) evidence: usize,
    /// What the task takes of the memory for keys and values.
    pub(super) memory: TaskMemory,
}

//! What a task takes of the memory for keys and values.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::decoder::block_capacity;
use crate::generate::task::GenerationTask;
use crate::prompt::PromptToken;

/// Tokens that a task stores: those of its prompt stages, which other tasks may share, and its own.
#[derive(Clone, Debug)]
pub(in crate::generate) struct TaskMemory {
    /// The member that writes the text.
    pub(super) member: usize,
    /// The stages of the prompt.
    pub(super) stages: Vec<StageMemory>,
    /// Tokens of the blocks that only this task uses.
    pub(super) own_tokens: usize,
}

/// Tokens of a prompt stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StageMemory {
    /// Hash of the prompt up to the end of the stage, and of its image.
    pub(super) key: u64,
    /// Tokens of its blocks.
    pub(super) tokens: usize,
}

impl TaskMemory {
    /// Returns the memory of a task. `image_tokens`: the tokens of its image. `text_tokens`: the most
    /// tokens of one of its texts.
    pub(in crate::generate) fn new(
        task: &GenerationTask,
        image_tokens: usize,
        text_tokens: usize,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        let stages = task.prompt.stages.iter().map(|stage| {
            stage.hash(&mut hasher);
            let mut tokens = 0;
            for token in stage {
                tokens += match token {
                    PromptToken::Token(_) => 1,
                    PromptToken::Image => {
                        task.image.as_ref().map(|image| &image.key).hash(&mut hasher);
                        image_tokens
                    }
                };
            }
            StageMemory { key: hasher.finish(), tokens: block_capacity(tokens) }
        });
        let stages = stages.collect();
        let samples = task.samples.max(1);
        // Where a text splits, each part starts a block, and may leave room in it.
        let split_tokens = if samples > 1 { 2 * block_capacity(1) } else { 0 };
        let own_tokens = (block_capacity(text_tokens) + split_tokens) * samples;
        Self { member: task.member, stages, own_tokens }
    }
}

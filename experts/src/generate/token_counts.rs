//! Tokens that an engine has processed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of texts and tokens since the engine was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Evaluations that were started.
    pub evaluations: u64,
    /// Tokens of their prompts, image tokens included, computed or kept from an earlier prompt.
    pub prompt: u64,
    /// Tokens after the prompts: what the members wrote, the literals of the format, and evidence.
    pub written: u64,
}

/// Counts the tokens of an engine.
#[derive(Debug, Default)]
pub(super) struct TokenCounter {
    evaluations: AtomicU64,
    prompt: AtomicU64,
    written: AtomicU64,
}

impl TokenCounter {
    /// Counts an evaluation with this number of prompt tokens.
    pub(super) fn add_evaluation(&self, prompt: usize) {
        self.evaluations.fetch_add(1, Ordering::Relaxed);
        self.prompt.fetch_add(prompt as u64, Ordering::Relaxed);
    }

    /// Counts tokens after prompts.
    pub(super) fn add_written(&self, tokens: usize) {
        self.written.fetch_add(tokens as u64, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(super) fn counts(&self) -> TokenCounts {
        let [evaluations, prompt, written] = [&self.evaluations, &self.prompt, &self.written]
            .map(|count| count.load(Ordering::Relaxed));
        TokenCounts { evaluations, prompt, written }
    }
}

//! State of one evaluation during generation.

use std::sync::Arc;

use super::sampler::GreedySampler;
use super::task::GenerationTask;
use crate::decoder::KvCache;
use crate::prompt::{STOP, TokenStep, one_line};
use crate::{Error, Rating, Score};

/// An evaluation during generation: caches, position in the format, and ratings.
pub(super) struct TextGeneration {
    pub(super) member: usize,
    pub(super) trunk_cache: KvCache,
    pub(super) head_cache: KvCache,
    /// Tokens that the next forward pass processes.
    pub(super) pending_tokens: Vec<u32>,
    format: Arc<[TokenStep]>,
    /// Index of the current step of the format.
    step_index: usize,
    /// Tokens of the current free text.
    free_tokens: Vec<u32>,
    /// Last finished free text.
    analysis: String,
    /// True if `analysis` was truncated at the token budget.
    cut: bool,
    ratings: Vec<Rating>,
    error: Option<Error>,
}

impl TextGeneration {
    /// Starts the evaluation of a task. The caches contain its prompt.
    ///
    /// # Errors
    /// If the first step of the format needs logits. There are none before the first literal.
    pub(super) fn new(
        task: &GenerationTask,
        trunk_cache: KvCache,
        head_cache: KvCache,
        sampler: &GreedySampler,
    ) -> Result<Self, Error> {
        let mut generation = Self {
            member: task.member,
            trunk_cache,
            head_cache,
            pending_tokens: Vec::new(),
            format: task.format.clone(),
            step_index: 0,
            free_tokens: Vec::new(),
            analysis: String::new(),
            cut: false,
            ratings: Vec::new(),
            error: None,
        };
        generation.advance(sampler);
        if generation.pending_tokens.is_empty() && !generation.is_done() {
            return Err(Error::Template(
                "the format of an evaluation must start with a literal".to_owned(),
            ));
        }
        Ok(generation)
    }

    /// Returns true if the text is complete or failed.
    pub(super) fn is_done(&self) -> bool {
        self.error.is_some() || self.step_index >= self.format.len()
    }

    /// Returns the ratings, or the error that ended the text.
    pub(super) fn into_ratings(self) -> Result<Vec<Rating>, Error> {
        self.error.map_or(Ok(self.ratings), Err)
    }

    /// Advances to the next step that needs logits and queues the literals before it. With a token
    /// budget of zero, free texts are left empty.
    fn advance(&mut self, sampler: &GreedySampler) {
        let format = self.format.clone();
        while let Some(step) = format.get(self.step_index) {
            match step {
                TokenStep::Literal(tokens) => self.pending_tokens.extend(tokens),
                TokenStep::FreeText if sampler.token_budget() == 0 => {
                    self.pending_tokens.extend(&sampler.stop_tokens);
                    self.analysis.clear();
                    self.cut = !sampler.settings.scores_only;
                }
                TokenStep::FreeText | TokenStep::Score(_) => return,
            }
            self.step_index += 1;
        }
    }

    /// Continues the text with the logits after its pending tokens. An error ends only this text.
    pub(super) fn push_logits(&mut self, logits: &[f32], sampler: &GreedySampler) {
        self.error = self.try_push_logits(logits, sampler).err();
    }

    /// See [`Self::push_logits`].
    fn try_push_logits(&mut self, logits: &[f32], sampler: &GreedySampler) -> Result<(), Error> {
        self.pending_tokens.clear();
        if !logits.iter().all(|l| l.is_finite()) {
            return Err(Error::NotFinite);
        }
        let format = self.format.clone();
        match format.get(self.step_index) {
            Some(TokenStep::Score(tokens)) => {
                let logit = |token: &u32| logits.get(*token as usize).copied().unwrap_or(f32::MIN);
                let score = Score::from_logits(&tokens.iter().map(logit).collect::<Vec<_>>());
                self.pending_tokens.extend(tokens.get(usize::from(score.value)));
                let analysis = std::mem::take(&mut self.analysis);
                self.ratings.push(Rating { analysis, cut: self.cut, score });
                self.step_index += 1;
                self.advance(sampler);
            }
            Some(TokenStep::FreeText) => {
                let token = sampler.choose(logits);
                self.free_tokens.push(token);
                self.pending_tokens.push(token);
                let text = sampler.tokenizer.decode(&self.free_tokens)?;
                let has_stop = text.contains(STOP);
                let is_exhausted = self.free_tokens.len() >= sampler.token_budget();
                if has_stop || is_exhausted {
                    if !has_stop {
                        self.pending_tokens.extend(&sampler.stop_tokens);
                    }
                    self.cut = !has_stop;
                    self.analysis = one_line(text.split(STOP).next().unwrap_or_default());
                    self.free_tokens.clear();
                    self.step_index += 1;
                    self.advance(sampler);
                }
            }
            Some(TokenStep::Literal(_)) | None => {}
        }
        Ok(())
    }
}

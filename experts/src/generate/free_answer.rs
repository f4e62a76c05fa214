//! Free text of any length and several lines: answers to questions. No format constrains it.

use std::collections::VecDeque;
use std::sync::Arc;

use candle::{DType, Tensor};

use super::engine::Engine;
use super::prefix_cache::PrefixCache;
use super::task::{GenerationTask, ImageTokens};
use crate::Error;
use crate::decoder::{CachedSequence, KvCache};
use crate::prompt::{PromptToken, StagedPrompt};

/// A prompt that a member of the engine answers.
#[derive(Clone, Debug)]
pub struct AnswerTask {
    /// The prompt, up to the start of the answer.
    pub prompt: StagedPrompt,
    /// Image in the prompt.
    pub image: Option<Arc<ImageTokens>>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeAnswer {
    /// The text, without special tokens.
    pub text: String,
    /// The generated tokens, without the special token that ends the answer.
    pub tokens: Vec<u32>,
    /// True if the answer ends at the token budget.
    pub is_cut: bool,
    /// Number of tokens of the prompt, image tokens included.
    pub prompt_tokens: usize,
}

/// An answer in progress.
struct ActiveAnswer {
    /// Index of its task.
    index: usize,
    /// Tokens that it may take, prompt and answer.
    capacity: usize,
    prompt_tokens: usize,
    trunk_cache: KvCache,
    head_cache: KvCache,
    /// The token that the next forward pass processes.
    pending: u32,
    tokens: Vec<u32>,
    end: Option<AnswerEnd>,
}

/// How an answer ended.
enum AnswerEnd {
    Complete,
    Cut,
    Failed(Error),
}

/// A task whose answer has not started. The prompt of the task lacks its last token.
struct WaitingAnswer {
    index: usize,
    capacity: usize,
    prompt_tokens: usize,
    task: GenerationTask,
    last: u32,
}

impl Engine {
    /// Answers prompts with a member: greedily, up to a special token such as the end of the turn, or
    /// to `max_tokens`. An answer does not depend on the other prompts.
    ///
    /// If a prompt exceeds the context, has no image although it contains one, or leads to logits that
    /// are not finite, only its answer fails.
    ///
    /// # Errors
    ///
    /// There is no such member, or a tensor operation fails.
    pub fn answer(
        &self,
        member: usize,
        tasks: &[AnswerTask],
        max_tokens: usize,
        prefix_cache: &mut PrefixCache,
    ) -> Result<Vec<Result<FreeAnswer, Error>>, Error> {
        let mut results: Vec<Option<Result<FreeAnswer, Error>>> =
            tasks.iter().map(|_| None).collect();
        let mut waiting = VecDeque::new();
        for (index, task) in tasks.iter().enumerate() {
            match self.prepare_answer(member, index, task, max_tokens) {
                Ok(answer) => waiting.push_back(answer),
                Err(error) => results[index] = Some(Err(error)),
            }
        }
        let mut active: Vec<ActiveAnswer> = Vec::new();
        loop {
            self.start_answers(&mut waiting, &mut active, prefix_cache)?;
            if active.is_empty() {
                break;
            }
            self.answer_step(member, &mut active, max_tokens)?;
            for done in active.extract_if(.., |answer| answer.end.is_some()) {
                let index = done.index;
                results[index] = Some(self.finish_answer(done));
            }
        }
        let missing = || Err(Error::Template("a prompt has no answer".to_owned()));
        Ok(results.into_iter().map(|result| result.unwrap_or_else(missing)).collect())
    }

    /// Checks a task, and takes the last token off its prompt: the first forward pass of the answer
    /// processes it.
    fn prepare_answer(
        &self,
        member: usize,
        index: usize,
        task: &AnswerTask,
        max_tokens: usize,
    ) -> Result<WaitingAnswer, Error> {
        let AnswerTask { mut prompt, image } = task.clone();
        let task = GenerationTask { member, prompt, image, format: Arc::from([]), samples: 1 };
        let counted = self.count_tokens(&task)?;
        // An answer is not completed with knowledge.
        let tokens = counted.total - counted.evidence;
        let capacity = tokens + max_tokens;
        if capacity > self.context {
            let context = self.context;
            return Err(Error::TooLong { prompt: tokens, evaluation: max_tokens, context });
        }
        prompt = task.prompt;
        let last = prompt.stages.last_mut().and_then(Vec::pop);
        let Some(PromptToken::Token(last)) = last else {
            return Err(Error::Template(
                "the prompt of an answer is empty or ends with an image".to_owned(),
            ));
        };
        prompt.stages.retain(|stage| !stage.is_empty());
        let task = GenerationTask { prompt, ..task };
        Ok(WaitingAnswer { index, capacity, prompt_tokens: tokens, task, last })
    }

    /// Starts waiting answers in their order, as far as the memory allows.
    fn start_answers(
        &self,
        waiting: &mut VecDeque<WaitingAnswer>,
        active: &mut Vec<ActiveAnswer>,
        prefix_cache: &mut PrefixCache,
    ) -> Result<(), Error> {
        let mut used: usize = active.iter().map(|answer| answer.capacity).sum();
        let mut started = Vec::new();
        while let Some(next) = waiting.pop_front() {
            if !self.memory.has_room(used + next.capacity) && used > 0 {
                waiting.push_front(next);
                break;
            }
            used += next.capacity;
            started.push(next);
        }
        if started.is_empty() {
            return Ok(());
        }
        let tasks: Vec<&GenerationTask> = started.iter().map(|answer| &answer.task).collect();
        let kept = self.memory.prefix_tokens();
        let caches = prefix_cache.prefill(&self.decoder, &tasks, kept)?;
        let started = started.into_iter().zip(caches);
        active.extend(started.map(|(answer, (trunk_cache, head_cache))| ActiveAnswer {
            index: answer.index,
            capacity: answer.capacity,
            prompt_tokens: answer.prompt_tokens,
            trunk_cache,
            head_cache,
            pending: answer.last,
            tokens: Vec::new(),
            end: None,
        }));
        Ok(())
    }

    /// Adds a token to each answer.
    fn answer_step(
        &self,
        member: usize,
        active: &mut [ActiveAnswer],
        max_tokens: usize,
    ) -> Result<(), Error> {
        let (trunk, head) = (&self.decoder.trunk, self.decoder.head(member)?);
        let pending: Vec<u32> = active.iter().map(|answer| answer.pending).collect();
        let mut sequences: Vec<CachedSequence> = (active.iter_mut())
            .map(|answer| CachedSequence::causal(1, &mut answer.trunk_cache))
            .collect();
        let hidden: Tensor = trunk.forward_cached(&trunk.embed(&pending)?, &mut sequences)?;
        let mut sequences: Vec<CachedSequence> = (active.iter_mut())
            .map(|answer| CachedSequence::causal(1, &mut answer.head_cache))
            .collect();
        let hidden = head.forward_cached(&hidden, &mut sequences)?;
        let logits = head.logits(&hidden)?.to_dtype(DType::F32)?.to_vec2::<f32>()?;
        for (answer, logits) in active.iter_mut().zip(logits) {
            answer.end = self.next_token(answer, &logits, max_tokens);
        }
        Ok(())
    }

    /// Chooses the next token of an answer, and returns how the answer ends with it.
    fn next_token(
        &self,
        answer: &mut ActiveAnswer,
        logits: &[f32],
        max_tokens: usize,
    ) -> Option<AnswerEnd> {
        if !logits.iter().all(|logit| logit.is_finite()) {
            return Some(AnswerEnd::Failed(Error::NotFinite));
        }
        // Rows of padding in the embeddings are no tokens.
        let known = logits.get(..self.tokenizer().vocab_size()).unwrap_or(logits);
        let token = most_probable(known);
        if self.tokenizer().is_special(token) {
            return Some(AnswerEnd::Complete);
        }
        answer.tokens.push(token);
        answer.pending = token;
        (answer.tokens.len() >= max_tokens).then_some(AnswerEnd::Cut)
    }

    fn finish_answer(&self, answer: ActiveAnswer) -> Result<FreeAnswer, Error> {
        let ActiveAnswer { tokens, prompt_tokens, end, .. } = answer;
        if let Some(AnswerEnd::Failed(error)) = end {
            return Err(error);
        }
        let is_cut = matches!(end, Some(AnswerEnd::Cut));
        let text = self.tokenizer().decode(&tokens)?;
        Ok(FreeAnswer { text, tokens, is_cut, prompt_tokens })
    }
}

/// Returns the token with the largest logit, the lowest id on a tie.
fn most_probable(logits: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, logit) in (0_u32..).zip(logits) {
        if *logit > best.1 {
            best = (token, *logit);
        }
    }
    best.0
}

//! Free text of any length and several lines: answers to questions. No format constrains it.

use std::collections::VecDeque;
use std::sync::Arc;

use candle::{DType, Tensor};

use super::engine::Engine;
use super::memory::{TaskMemory, UsedMemory};
use super::prefix_cache::PrefixCache;
use super::task::{GenerationTask, ImageTokens, image_tokens};
use super::task_queue::starts_texts;
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

/// An answer of a queue that has ended.
pub struct FinishedAnswer {
    /// Its number in the queue.
    pub number: usize,
    /// The answer, or why there is none.
    pub result: Result<FreeAnswer, Error>,
}

/// Answers of a member that wait, and those in progress. A prompt may be added while others are in
/// progress.
pub struct AnswerQueue {
    member: usize,
    max_tokens: usize,
    /// Number of prompts so far.
    count: usize,
    waiting: VecDeque<WaitingAnswer>,
    /// Prompts that cannot be answered.
    rejected: Vec<FinishedAnswer>,
    active: Vec<ActiveAnswer>,
    /// Memory of the answers in progress.
    memory: UsedMemory,
}

impl AnswerQueue {
    /// Creates an empty queue. `max_tokens`: the token budget of an answer.
    pub fn new(member: usize, max_tokens: usize) -> Self {
        Self {
            member,
            max_tokens,
            count: 0,
            waiting: VecDeque::new(),
            rejected: Vec::new(),
            active: Vec::new(),
            memory: UsedMemory::default(),
        }
    }

    /// Returns true if no answer waits or is in progress.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.rejected.is_empty() && self.active.is_empty()
    }
}

/// An answer in progress.
struct ActiveAnswer {
    /// Its number in the queue.
    number: usize,
    /// What it takes of the memory for keys and values.
    memory: TaskMemory,
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
    number: usize,
    memory: TaskMemory,
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
        let mut queue = AnswerQueue::new(member, max_tokens);
        let missing = || Err(Error::Template("a prompt has no answer".to_owned()));
        let mut results: Vec<Result<FreeAnswer, Error>> = tasks.iter().map(|_| missing()).collect();
        for task in tasks {
            self.enqueue_answer(&mut queue, task);
        }
        while !queue.is_empty() {
            for FinishedAnswer { number, result } in self.step_answers(&mut queue, prefix_cache)? {
                if let Some(place) = results.get_mut(number) {
                    *place = result;
                }
            }
        }
        Ok(results)
    }

    /// Adds a prompt to a queue and returns its number: 0 for the first prompt of the queue, and so on.
    pub fn enqueue_answer(&self, queue: &mut AnswerQueue, task: &AnswerTask) -> usize {
        let number = queue.count;
        queue.count += 1;
        match self.prepare_answer(queue, number, task) {
            Ok(answer) => queue.waiting.push_back(answer),
            Err(error) => queue.rejected.push(FinishedAnswer { number, result: Err(error) }),
        }
        number
    }

    /// Starts the waiting answers that the memory has room for, in their order, and adds a token to each
    /// answer in progress. Returns those that have ended.
    ///
    /// # Errors
    ///
    /// There is no such member, or a tensor operation fails. The queue cannot be used any more.
    pub fn step_answers(
        &self,
        queue: &mut AnswerQueue,
        prefix_cache: &mut PrefixCache,
    ) -> Result<Vec<FinishedAnswer>, Error> {
        self.start_answers(queue, prefix_cache)?;
        let mut finished = std::mem::take(&mut queue.rejected);
        if !queue.active.is_empty() {
            self.answer_step(queue)?;
            for done in queue.active.extract_if(.., |answer| answer.end.is_some()) {
                let number = done.number;
                queue.memory.remove(&done.memory, self.memory.token);
                finished.push(FinishedAnswer { number, result: self.finish_answer(done) });
            }
        }
        Ok(finished)
    }

    /// Checks a task, and takes the last token off its prompt: the first forward pass of the answer
    /// processes it.
    fn prepare_answer(
        &self,
        queue: &AnswerQueue,
        number: usize,
        task: &AnswerTask,
    ) -> Result<WaitingAnswer, Error> {
        let AnswerQueue { member, max_tokens, .. } = *queue;
        let AnswerTask { mut prompt, image } = task.clone();
        let format = Arc::from([]);
        let task = GenerationTask { member, prompt, image, format, samples: 1, opening: None };
        let counted = self.count_tokens(&task)?;
        let (prompt_tokens, context) = (counted.prompt, self.context);
        if prompt_tokens + max_tokens > context {
            return Err(Error::TooLong { prompt: prompt_tokens, evaluation: max_tokens, context });
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
        let memory = TaskMemory::new(&task, image_tokens(&task)?, max_tokens + 1);
        Ok(WaitingAnswer { number, memory, prompt_tokens, task, last })
    }

    /// Starts waiting answers in their order, as far as the memory allows.
    fn start_answers(
        &self,
        queue: &mut AnswerQueue,
        prefix_cache: &mut PrefixCache,
    ) -> Result<(), Error> {
        if !starts_texts(queue.waiting.len(), queue.active.len()) {
            return Ok(());
        }
        let used = &mut queue.memory;
        let started = used.take_fitting(&mut queue.waiting, |next| &next.memory, self.memory);
        if started.is_empty() {
            return Ok(());
        }
        let tasks: Vec<&GenerationTask> = started.iter().map(|answer| &answer.task).collect();
        let caches = prefix_cache.prefill(&self.decoder, &tasks, self.memory)?;
        let started = started.into_iter().zip(caches);
        queue.active.extend(started.map(|(answer, (trunk_cache, head_cache))| ActiveAnswer {
            number: answer.number,
            memory: answer.memory,
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
    fn answer_step(&self, queue: &mut AnswerQueue) -> Result<(), Error> {
        let (trunk, head) = (&self.decoder.trunk, self.decoder.head(queue.member)?);
        let (active, max_tokens) = (&mut queue.active, queue.max_tokens);
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
        let known = logits.get(..self.tokenizer().id_limit() as usize).unwrap_or(logits);
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

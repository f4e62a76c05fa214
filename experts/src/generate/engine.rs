//! Batched text generation with the decoder of a panel.

use candle::Tensor;
use rayon::prelude::*;

use super::knowledge::KnowledgeCompletion;
use super::memory::{CacheMemory, TaskMemory, TokenBytes};
use super::panel_decoder::PanelDecoder;
use super::prefix_cache::PrefixCache;
use super::sampler::TextSampler;
use super::task::{GenerationSettings, GenerationTask, image_tokens};
use super::task_queue::{TaskQueue, WaitingTask};
use super::task_tokens::TaskTokens;
use super::tasks_in_progress::FinishedTask;
use super::text_alternative::TextAlternative;
use super::text_generation::TextGeneration;
use super::token_counts::{TokenCounter, TokenCounts};
use crate::decoder::{CachedSequence, DecoderConfig, Head, Trunk};
use crate::prompt::{PromptToken, TokenStep};
use crate::{Error, Rating, TextTokenizer};

/// Decoder, tokenizer and generation settings of a panel.
pub struct Engine {
    pub(super) decoder: PanelDecoder,
    sampler: TextSampler,
    /// Context length, in tokens.
    pub(super) context: usize,
    /// Memory for keys and values.
    pub(super) memory: CacheMemory,
    counter: TokenCounter,
}

impl Engine {
    /// Creates an engine from loaded parts.
    pub fn new(
        trunk: Trunk,
        heads: Vec<Head>,
        tokenizer: TextTokenizer,
        config: &DecoderConfig,
        settings: GenerationSettings,
    ) -> Result<Self, Error> {
        let token_bytes = TokenBytes::new(config, trunk.depth(), trunk.cache_dtype());
        Ok(Self {
            decoder: PanelDecoder { trunk, heads },
            sampler: TextSampler::new(tokenizer, config.vocab_size, settings)?,
            context: config.max_position_embeddings,
            memory: CacheMemory::unlimited(token_bytes),
            counter: TokenCounter::default(),
        })
    }

    /// Limits the memory for keys and values, in bytes: of the texts in progress, and of the prompt
    /// stages that are kept for later texts. Texts beyond it wait for others to end. One text is
    /// always in progress, whatever it takes.
    pub fn limit_memory(&mut self, bytes: u64) {
        self.memory.limit = bytes;
    }

    /// Lets members look up the questions that they ask in their free texts. Changes the texts.
    pub fn set_knowledge(&mut self, knowledge: KnowledgeCompletion) {
        self.sampler.knowledge = Some(knowledge);
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &TextTokenizer {
        &self.sampler.tokenizer
    }

    /// Returns the generation settings.
    pub fn settings(&self) -> GenerationSettings {
        self.sampler.settings
    }

    /// Returns the context length of the decoder, in tokens.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Returns the number of tokens of a text of a case if they alone exceed the context, so that no
    /// prompt can hold the text.
    pub fn tokens_over_context(&self, text: &str) -> Result<Option<usize>, Error> {
        // Short texts need no check here: `generate` counts the tokens of the whole prompt.
        if text.len() <= self.context {
            return Ok(None);
        }
        let tokens = self.tokenizer().encode_quoted(text)?.len();
        Ok((tokens > self.context).then_some(tokens))
    }

    /// Returns the numbers of evaluations and tokens so far.
    pub fn token_counts(&self) -> TokenCounts {
        self.counter.counts()
    }

    /// Generates a text for each task and returns its ratings, one for each score of the format. With
    /// several samples, they are the average of all texts.
    ///
    /// If a task exceeds the context, has no image although its prompt contains one, or leads to
    /// logits that are not finite, only this task fails.
    pub fn generate(
        &self,
        tasks: &[GenerationTask],
        prefix_cache: &mut PrefixCache,
    ) -> Result<Vec<Result<Vec<Rating>, Error>>, Error> {
        let mut results: Vec<Result<Vec<Rating>, Error>> =
            tasks.iter().map(|_| Ok(Vec::new())).collect();
        let mut queue = TaskQueue::default();
        for task in tasks {
            self.enqueue(&mut queue, task.clone());
        }
        while !queue.is_empty() {
            for FinishedTask { number, texts } in self.step(&mut queue, prefix_cache)? {
                if let Some(result) = results.get_mut(number) {
                    *result = texts.map(TextAlternative::average);
                }
            }
        }
        Ok(results)
    }

    /// Adds a task to a queue and returns its number: 0 for the first task of the queue, and so on.
    pub fn enqueue(&self, queue: &mut TaskQueue, task: GenerationTask) -> usize {
        let tokens = self.count_tokens(&task);
        queue.push(task, tokens)
    }

    /// Starts the waiting tasks that the memory has room for, in their order, and adds a token to each
    /// text in progress. Returns the tasks whose texts have all ended.
    ///
    /// Tasks may be added to the queue between two steps. Waiting tasks start together, when there is one
    /// for every four texts in progress and the memory has room.
    ///
    /// # Errors
    ///
    /// A tensor operation fails. The queue cannot be used any more.
    pub fn step(
        &self,
        queue: &mut TaskQueue,
        prefix_cache: &mut PrefixCache,
    ) -> Result<Vec<FinishedTask>, Error> {
        self.start_texts(queue, prefix_cache)?;
        let mut finished = queue.take_rejected();
        let mut texts = queue.active.texts();
        if !texts.is_empty() {
            self.decode_step(&mut texts)?;
            finished.extend(queue.active.take_finished(self.memory.token));
        }
        Ok(finished)
    }

    /// Starts waiting texts in their order, as far as the memory allows.
    fn start_texts(
        &self,
        queue: &mut TaskQueue,
        prefix_cache: &mut PrefixCache,
    ) -> Result<(), Error> {
        let started = queue.take_startable(self.memory);
        if started.is_empty() {
            return Ok(());
        }
        let tasks: Vec<&GenerationTask> = started.iter().map(|started| &started.task).collect();
        let caches = prefix_cache.prefill(&self.decoder, &tasks, self.memory)?;
        for ((trunk, head), WaitingTask { number, tokens, task }) in caches.into_iter().zip(started)
        {
            let text = TextGeneration::new(&task, trunk, head, &self.sampler)?
                .with_evidence(tokens.evidence);
            self.counter.add_evaluation(tokens.prompt);
            queue.active.add(number, tokens.memory, text);
        }
        queue.active.sort();
        Ok(())
    }

    /// Processes the pending tokens of all active texts and continues each text with its logits.
    fn decode_step(&self, active: &mut [&mut TextGeneration]) -> Result<(), Error> {
        let pending: Vec<u32> =
            active.iter().flat_map(|text| text.pending_tokens.iter().copied()).collect();
        self.counter.add_written(pending.len());
        let hidden = {
            let mut sequences: Vec<CachedSequence> = active
                .iter_mut()
                .map(|text| {
                    CachedSequence::causal(text.pending_tokens.len(), &mut text.trunk_cache)
                })
                .collect();
            let trunk = &self.decoder.trunk;
            trunk.forward_cached(&trunk.embed(&pending)?, &mut sequences)?
        };
        let mut parts = Vec::new();
        let (mut rest, mut first_row) = (&mut *active, 0);
        while let Some(first) = rest.first() {
            let member = first.member;
            let count = rest.iter().take_while(|text| text.member == member).count();
            let (texts, later) = rest.split_at_mut(count);
            let rows: usize = texts.iter().map(|text| text.pending_tokens.len()).sum();
            parts.push((member, hidden.narrow(0, first_row, rows)?, texts));
            first_row += rows;
            rest = later;
        }
        // The heads are independent of each other, and small ones do not keep all threads busy. On a GPU
        // they run one after the other, and the program waits once per step.
        let logits = parts
            .into_par_iter()
            .with_min_len(self.decoder.min_heads_per_thread())
            .map(|(member, hidden, texts)| self.head_logits(member, &hidden, texts))
            .collect::<Result<Vec<Tensor>, Error>>()?;
        let logits = Tensor::cat(&logits, 0)?.to_dtype(candle::DType::F32)?.to_vec2::<f32>()?;
        let texts = active.par_iter_mut().zip(logits);
        texts.for_each(|(text, logits)| text.push_logits(&logits, &self.sampler));
        Ok(())
    }

    /// Runs a member's head on the rows of its texts and returns the logits of each text.
    ///
    /// # Shapes
    /// The result: (texts, v).
    fn head_logits(
        &self,
        member: usize,
        hidden: &Tensor,
        texts: &mut [&mut TextGeneration],
    ) -> Result<Tensor, Error> {
        let head = self.decoder.head(member)?;
        let mut sequences: Vec<CachedSequence> = texts
            .iter_mut()
            .map(|text| CachedSequence::causal(text.pending_tokens.len(), &mut text.head_cache))
            .collect();
        let hidden = head.forward_cached(&hidden.contiguous()?, &mut sequences)?;
        if sequences.iter().all(|sequence| sequence.new_tokens == 1) {
            return Ok(head.logits(&hidden)?);
        }
        let last_rows = sequences.iter().scan(0u32, |end, sequence| {
            *end += sequence.new_tokens as u32;
            Some(*end - 1)
        });
        let last_rows = Tensor::from_iter(last_rows, hidden.device())?;
        Ok(head.logits(&hidden.index_select(&last_rows, 0)?)?)
    }

    /// Returns the number of tokens that a task may take. Returns an error if it has no
    /// head or image, or exceeds the context.
    pub(super) fn count_tokens(&self, task: &GenerationTask) -> Result<TaskTokens, Error> {
        self.decoder.head(task.member)?;
        let mut tokens = task.prompt.stages.iter().flatten();
        if task.image.is_none() && tokens.any(|token| *token == PromptToken::Image) {
            return Err(Error::Template(
                "the prompt contains an image, but the case has none".to_owned(),
            ));
        }
        let image_tokens = image_tokens(task)?;
        let prompt = task.prompt.token_count(image_tokens);
        let evaluation = task.format.iter().map(|step| match step {
            TokenStep::Literal(tokens) => tokens.len(),
            TokenStep::FreeText => self.sampler.token_budget() + self.sampler.stop_tokens.len(),
            TokenStep::Score(_) => 1,
        });
        let evaluation = evaluation.sum();
        if prompt + evaluation > self.context {
            return Err(Error::TooLong { prompt, evaluation, context: self.context });
        }
        let wanted = self.sampler.knowledge.as_ref().map_or(0, KnowledgeCompletion::max_tokens);
        // A task that fits without evidence never fails for its evidence.
        let evidence = wanted.min(self.context - prompt - evaluation);
        let memory = TaskMemory::new(task, image_tokens, evaluation + evidence);
        Ok(TaskTokens { prompt, evidence, memory })
    }
}

//! Batched text generation with the decoder of a panel.

use candle::Tensor;

use super::panel_decoder::PanelDecoder;
use super::prefix_cache::PrefixCache;
use super::sampler::GreedySampler;
use super::task::{GenerationSettings, GenerationTask};
use super::text_generation::TextGeneration;
use crate::decoder::{CachedSequence, DecoderConfig, Head, Trunk};
use crate::prompt::{PromptToken, TokenStep};
use crate::{Error, Rating, TextTokenizer};

/// Decoder, tokenizer and generation settings of a panel.
pub struct Engine {
    decoder: PanelDecoder,
    sampler: GreedySampler,
    /// Context length, in tokens.
    context: usize,
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
        Ok(Self {
            decoder: PanelDecoder { trunk, heads },
            sampler: GreedySampler::new(tokenizer, config.vocab_size, settings)?,
            context: config.max_position_embeddings,
        })
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

    /// Generates a text for each task and returns its ratings, one for each score of the format.
    ///
    /// If a task exceeds the context, has no image although its prompt contains one, or leads to
    /// logits that are not finite, only this task fails.
    pub fn generate(
        &self,
        tasks: &[GenerationTask],
        prefix_cache: &mut PrefixCache,
    ) -> Result<Vec<Result<Vec<Rating>, Error>>, Error> {
        let mut results: Vec<Result<Vec<Rating>, Error>> = Vec::with_capacity(tasks.len());
        let mut valid_tasks = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            results.push(self.check_task(task).map(|()| Vec::new()));
            if results[i].is_ok() {
                valid_tasks.push((i, task));
            }
        }
        // Sorted by member, so that the rows of a head are adjacent.
        valid_tasks.sort_by_key(|(_, task)| task.member);
        let sorted: Vec<&GenerationTask> = valid_tasks.iter().map(|(_, task)| *task).collect();
        let caches = prefix_cache.prefill(&self.decoder, &sorted)?;
        let mut generations = Vec::with_capacity(sorted.len());
        for ((trunk, head), (i, task)) in caches.into_iter().zip(&valid_tasks) {
            generations.push((*i, TextGeneration::new(task, trunk, head, &self.sampler)?));
        }
        while generations.iter().any(|(_, text)| !text.is_done()) {
            let mut active: Vec<&mut TextGeneration> = generations
                .iter_mut()
                .map(|(_, text)| text)
                .filter(|text| !text.is_done())
                .collect();
            self.decode_step(&mut active)?;
        }
        for (i, text) in generations {
            results[i] = text.into_ratings();
        }
        Ok(results)
    }

    /// Processes the pending tokens of all active texts and continues each text with its logits.
    fn decode_step(&self, active: &mut [&mut TextGeneration]) -> Result<(), Error> {
        let pending: Vec<u32> =
            active.iter().flat_map(|text| text.pending_tokens.iter().copied()).collect();
        let hidden = {
            let mut sequences: Vec<CachedSequence> = active
                .iter_mut()
                .map(|text| CachedSequence {
                    new_tokens: text.pending_tokens.len(),
                    cache: &mut text.trunk_cache,
                })
                .collect();
            let trunk = &self.decoder.trunk;
            trunk.forward_cached(&trunk.embed(&pending)?, &mut sequences)?
        };
        let (mut first_text, mut first_row) = (0, 0);
        while first_text < active.len() {
            let member = active[first_text].member;
            let count =
                active[first_text..].iter().take_while(|text| text.member == member).count();
            let texts = &mut active[first_text..first_text + count];
            let rows: usize = texts.iter().map(|text| text.pending_tokens.len()).sum();
            let logits = self.head_logits(member, &hidden.narrow(0, first_row, rows)?, texts)?;
            for (text, logits) in texts.iter_mut().zip(logits) {
                text.push_logits(&logits, &self.sampler);
            }
            first_text += count;
            first_row += rows;
        }
        Ok(())
    }

    /// Runs a member's head on the rows of its texts and returns the logits `(v)` of each text.
    fn head_logits(
        &self,
        member: usize,
        hidden: &Tensor,
        texts: &mut [&mut TextGeneration],
    ) -> Result<Vec<Vec<f32>>, Error> {
        let head = self.decoder.head(member)?;
        let mut sequences: Vec<CachedSequence> = texts
            .iter_mut()
            .map(|text| CachedSequence {
                new_tokens: text.pending_tokens.len(),
                cache: &mut text.head_cache,
            })
            .collect();
        let hidden = head.forward_cached(&hidden.contiguous()?, &mut sequences)?;
        let last_rows = sequences.iter().scan(0u32, |end, sequence| {
            *end += sequence.new_tokens as u32;
            Some(*end - 1)
        });
        let last_rows = Tensor::from_iter(last_rows, hidden.device())?;
        let logits = head.logits(&hidden.index_select(&last_rows, 0)?)?;
        Ok(logits.to_dtype(candle::DType::F32)?.to_vec2::<f32>()?)
    }

    /// Returns an error if a task has no head or image, or exceeds the context.
    fn check_task(&self, task: &GenerationTask) -> Result<(), Error> {
        self.decoder.head(task.member)?;
        let mut tokens = task.prompt.stages.iter().flatten();
        if task.image.is_none() && tokens.any(|token| *token == PromptToken::Image) {
            return Err(Error::Template(
                "the prompt contains an image, but the case has none".to_owned(),
            ));
        }
        let image_tokens = task.image.as_ref().map_or(Ok(0), |i| i.tokens.dim(0))?;
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
        Ok(())
    }
}

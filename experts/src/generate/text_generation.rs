//! State of one evaluation during generation.

use std::sync::Arc;

use super::knowledge::KnowledgeCompletion;
use super::opening_in_progress::OpeningInProgress;
use super::sampled_tokens::SampledToken;
use super::sampler::TextSampler;
use super::task::GenerationTask;
use super::text_alternative::TextAlternative;
use crate::decoder::KvCache;
use crate::evaluation::Lookup;
use crate::prompt::{QuestionInText, STOP, TokenStep, one_line};
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
    /// Tokens of the current free text since the last evidence in it.
    free_tokens: Vec<u32>,
    /// Number of tokens of the current free text before that, which count for its budget.
    earlier_tokens: usize,
    /// The current free text before that, without its questions.
    earlier_text: String,
    /// Questions of the last finished free text, or of the current one.
    lookups: Vec<Lookup>,
    /// Number of questions that the evaluation may still ask.
    questions_left: usize,
    /// Number of tokens of evidence that the evaluation may still take.
    evidence_left: usize,
    /// Last finished free text.
    analysis: String,
    /// True if `analysis` was truncated at the token budget.
    cut: bool,
    ratings: Vec<Rating>,
    /// The opening of the first free text, if the task asks for it.
    opening: Option<OpeningInProgress>,
    error: Option<Error>,
    /// Samples that have this text so far.
    samples: SampleRange,
    /// Texts that other samples of this text continue with since the last token.
    splits: Vec<Self>,
}

/// Samples with the same text.
#[derive(Clone, Copy)]
struct SampleRange {
    /// Number of the first one.
    first: usize,
    /// Number of samples.
    count: usize,
    /// Probability of the text among all of its task.
    weight: f64,
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
        sampler: &TextSampler,
    ) -> Result<Self, Error> {
        let mut generation = Self {
            member: task.member,
            trunk_cache,
            head_cache,
            pending_tokens: Vec::new(),
            format: task.format.clone(),
            step_index: 0,
            free_tokens: Vec::new(),
            earlier_tokens: 0,
            earlier_text: String::new(),
            lookups: Vec::new(),
            questions_left: sampler.knowledge.as_ref().map_or(0, KnowledgeCompletion::rounds),
            evidence_left: 0,
            analysis: String::new(),
            cut: false,
            ratings: Vec::new(),
            opening: task.opening.clone().map(OpeningInProgress::new),
            error: None,
            samples: SampleRange { first: 0, count: task.samples, weight: 1.0 },
            splits: Vec::new(),
        };
        generation.advance(sampler);
        if generation.pending_tokens.is_empty() && !generation.is_done() {
            return Err(Error::Template(
                "the format of an evaluation must start with a literal".to_owned(),
            ));
        }
        Ok(generation)
    }

    /// Allows this many tokens of evidence in the evaluation.
    pub(super) fn with_evidence(mut self, tokens: usize) -> Self {
        self.evidence_left = tokens;
        self
    }

    /// Returns true if the text is complete or failed.
    pub(super) fn is_done(&self) -> bool {
        self.error.is_some() || self.step_index >= self.format.len()
    }

    /// Returns the finished text, or the error that ended it.
    pub(super) fn into_alternative(self) -> Result<TextAlternative, Error> {
        let SampleRange { first, count, weight } = self.samples;
        let alternative = TextAlternative {
            weight,
            first_sample: first,
            samples: count,
            ratings: self.ratings,
            opening: self.opening.and_then(OpeningInProgress::into_written),
        };
        self.error.map_or(Ok(alternative), Err)
    }

    /// Returns the texts that other samples continue with since the last token.
    pub(super) fn take_splits(&mut self) -> Vec<Self> {
        std::mem::take(&mut self.splits)
    }

    /// Advances to the next step that needs logits and queues the literals before it. With a token
    /// budget of zero, free texts are left empty.
    fn advance(&mut self, sampler: &TextSampler) {
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
    pub(super) fn push_logits(&mut self, logits: &[f32], sampler: &TextSampler) {
        self.error = self.try_push_logits(logits, sampler).err();
    }

    /// See [`Self::push_logits`].
    fn try_push_logits(&mut self, logits: &[f32], sampler: &TextSampler) -> Result<(), Error> {
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
                let lookups = std::mem::take(&mut self.lookups);
                self.ratings.push(Rating {
                    cut: self.cut,
                    lookups,
                    ..Rating::new(analysis, score)
                });
                self.step_index += 1;
                self.advance(sampler);
            }
            Some(TokenStep::FreeText) => match self.choose_opening(logits, sampler) {
                Some(token) => self.push_free_token(token, sampler)?,
                None => self.push_samples(logits, sampler)?,
            },
            Some(TokenStep::Literal(_)) | None => {}
        }
        Ok(())
    }

    /// Returns the next token of the opening; `None` after the opening.
    fn choose_opening(&mut self, logits: &[f32], sampler: &TextSampler) -> Option<u32> {
        let is_first_text = self.ratings.is_empty() && self.samples.count == 1;
        let opening =
            self.opening.as_mut().filter(|opening| is_first_text && !opening.is_complete())?;
        Some(opening.choose(self.free_tokens.len(), logits, sampler))
    }

    /// Continues the current free text with the tokens of its samples. Other tokens than the most
    /// probable one start a text of their own, which shares what was computed.
    fn push_samples(&mut self, logits: &[f32], sampler: &TextSampler) -> Result<(), Error> {
        let tokens = sampler.sample(logits, self.samples.count);
        let SampleRange { first, weight, .. } = self.samples;
        let mut end = first;
        let ranges: Vec<(u32, SampleRange)> = tokens
            .into_iter()
            .map(|sampled| {
                let SampledToken { token, samples: count, weight: part } = sampled;
                let range = SampleRange { first: end, count, weight: weight * part };
                end += count;
                (token, range)
            })
            .collect();
        let Some(((token, samples), others)) = ranges.split_first() else {
            return Ok(());
        };
        for (token, samples) in others {
            let mut split = self.fork(*samples);
            split.push_free_token(*token, sampler)?;
            self.splits.push(split);
        }
        if !others.is_empty() {
            // Like the others, so that a text does not depend on which one goes on in place.
            self.trunk_cache.share();
            self.head_cache.share();
        }
        self.samples = *samples;
        self.push_free_token(*token, sampler)
    }

    /// Returns a copy for these samples. It shares the keys and values of the tokens so far.
    fn fork(&self, samples: SampleRange) -> Self {
        Self {
            member: self.member,
            trunk_cache: self.trunk_cache.fork(),
            head_cache: self.head_cache.fork(),
            pending_tokens: self.pending_tokens.clone(),
            format: self.format.clone(),
            step_index: self.step_index,
            free_tokens: self.free_tokens.clone(),
            earlier_tokens: self.earlier_tokens,
            earlier_text: self.earlier_text.clone(),
            lookups: self.lookups.clone(),
            questions_left: self.questions_left,
            evidence_left: self.evidence_left,
            analysis: self.analysis.clone(),
            cut: self.cut,
            ratings: self.ratings.clone(),
            opening: self.opening.clone(),
            error: None,
            samples,
            splits: Vec::new(),
        }
    }

    /// Adds a token to the current free text. A line break or the token budget ends the text, unless
    /// the line asks a question: then evidence follows, and the text continues.
    fn push_free_token(&mut self, token: u32, sampler: &TextSampler) -> Result<(), Error> {
        self.free_tokens.push(token);
        self.pending_tokens.push(token);
        let text = sampler.tokenizer.decode(&self.free_tokens)?;
        if let Some(opening) = self.opening.as_mut().filter(|_| self.ratings.is_empty()) {
            opening.complete(&self.free_tokens, &text);
        }
        let has_stop = text.contains(STOP);
        let is_exhausted = self.earlier_tokens + self.free_tokens.len() >= sampler.token_budget();
        let line = text.split(STOP).next().unwrap_or_default();
        let asks = has_stop && !is_exhausted;
        if asks && self.look_up(line, sampler)? {
            return Ok(());
        }
        if has_stop || is_exhausted {
            if !has_stop {
                self.pending_tokens.extend(&sampler.stop_tokens);
            }
            self.cut = !has_stop;
            self.analysis = one_line(&format!("{} {line}", self.earlier_text));
            self.earlier_text.clear();
            self.earlier_tokens = 0;
            self.free_tokens.clear();
            self.step_index += 1;
            self.advance(sampler);
        }
        Ok(())
    }

    /// Queues the evidence for the question that ends a line of the free text. Returns false if
    /// there is no question, or no round or room is left for it.
    fn look_up(&mut self, line: &str, sampler: &TextSampler) -> Result<bool, Error> {
        let Some(knowledge) = sampler.knowledge.as_ref().filter(|_| self.questions_left > 0) else {
            return Ok(false);
        };
        let Some(QuestionInText { before, question }) = QuestionInText::find(line) else {
            return Ok(false);
        };
        let evidence = knowledge.find_evidence(question, self.evidence_left, &sampler.tokenizer)?;
        let Some(evidence) = evidence else {
            return Ok(false);
        };
        self.questions_left -= 1;
        self.evidence_left = self.evidence_left.saturating_sub(evidence.tokens.len());
        self.pending_tokens.extend(evidence.tokens);
        self.earlier_text = one_line(&format!("{} {before}", self.earlier_text));
        let position = self.earlier_text.chars().count();
        self.lookups.push(Lookup { position, ..evidence.lookup });
        self.earlier_tokens += self.free_tokens.len();
        self.free_tokens.clear();
        Ok(true)
    }
}

//! Prefix cache: KV caches of prompt stages that several generation tasks share.
//!
//! The level of a prompt stage is its index in the prompt. The trunk computes a prompt stage once
//! for all members. Each head computes it once for its member.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use acem3_projector::{PromptSegment, SplicedPrompt, splice};
use candle::Tensor;
use rayon::prelude::*;

use super::memory::{CacheMemory, TokenBytes};
use super::panel_decoder::PanelDecoder;
use super::task::GenerationTask;
use crate::Error;
use crate::decoder::{CachedSequence, KvCache};
use crate::prompt::PromptToken;

/// Key of a prompt stage: all prompt stages up to and including it, and the image.
///
/// The same tokens split into other prompt stages have another key, because the split changes the
/// order of summation and so the last bits of the results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PrefixKey {
    stages: Vec<Vec<PromptToken>>,
    image: Option<String>,
}

/// Computed prompt stage, with the caches of all tokens up to its end.
struct CachedStage {
    trunk_cache: Arc<KvCache>,
    /// Output of the trunk for the tokens of the prompt stage, as input of the heads.
    trunk_output: Tensor,
    /// Caches of the heads, by member.
    head_caches: HashMap<usize, Arc<KvCache>>,
    /// Ranges of its tokens that attend to all tokens of their range.
    bidirectional: Vec<Range<usize>>,
    /// Number of tokens of the prompt stage.
    token_count: usize,
    /// [`PrefixCache::clock`] at the last use.
    last_used: u64,
}

/// Prompt stage that is not computed yet.
struct PendingStage {
    key: PrefixKey,
    /// Input rows of the trunk or head.
    input: Tensor,
    /// Ranges of these rows that attend to all tokens of their range.
    bidirectional: Vec<Range<usize>>,
    /// Cache of the earlier prompt stages.
    cache: KvCache,
}

/// Computed prompt stages. A prompt stage is reused only if all prompt stages before it are equal,
/// so the cache does not change results.
#[derive(Default)]
pub struct PrefixCache {
    stages: HashMap<PrefixKey, CachedStage>,
    /// Number of calls of [`Self::prefill`].
    clock: u64,
    computed_stages: u64,
    reused_stages: u64,
}

impl CachedStage {
    /// Returns the bytes that it takes.
    fn bytes(&self, token_bytes: TokenBytes) -> u64 {
        token_bytes.of_stage(self.token_count, self.head_caches.len())
    }

    /// Returns the cache of a member's head.
    fn head_cache(&self, member: usize) -> Result<&Arc<KvCache>, Error> {
        self.head_caches.get(&member).ok_or(Error::MissingPrefix)
    }
}

impl PrefixCache {
    /// Returns the numbers of computed and reused prompt stages.
    pub fn stats(&self) -> (u64, u64) {
        (self.computed_stages, self.reused_stages)
    }

    /// Returns the trunk cache and the head cache of each task's prompt. Computes missing prompt
    /// stages. Keeps those of these tasks and of texts in progress, and others as `memory` allows.
    pub(super) fn prefill(
        &mut self,
        decoder: &PanelDecoder,
        tasks: &[&GenerationTask],
        memory: CacheMemory,
    ) -> Result<Vec<(KvCache, KvCache)>, Error> {
        self.clock += 1;
        let stage_counts = tasks.iter().map(|t| t.prompt.stages.len());
        let levels = stage_counts.max().unwrap_or(0);
        self.mark_used(tasks);
        // Frees memory before new stages take some.
        self.evict(memory);
        for level in 0..levels {
            self.prefill_trunk_level(decoder, tasks, level)?;
            let members = (0..decoder.heads.len()).into_par_iter();
            let computed = members
                .with_min_len(decoder.min_heads_per_thread())
                .map(|member| self.prefill_head_level(decoder, member, tasks, level))
                .collect::<Result<Vec<_>, Error>>()?;
            for (member, stages) in computed.into_iter().enumerate() {
                for PendingStage { key, cache, .. } in stages {
                    if let Some(stage) = self.stages.get_mut(&key) {
                        stage.head_caches.insert(member, Arc::new(cache));
                    }
                }
            }
        }
        let caches = tasks.iter().map(|task| {
            let Some(last) = task.prompt.stages.len().checked_sub(1) else {
                // An empty prompt has no prompt stages.
                return Ok::<_, Error>((
                    KvCache::new(decoder.trunk.depth()),
                    KvCache::new(decoder.head(task.member)?.depth()),
                ));
            };
            let stage = self.stages.get(&prefix_key(task, last)).ok_or(Error::MissingPrefix)?;
            let head_cache = stage.head_cache(task.member)?;
            Ok((stage.trunk_cache.fork(), head_cache.fork()))
        });
        let caches = caches.collect::<Result<_, _>>()?;
        self.evict(memory);
        Ok(caches)
    }

    /// Marks the known prompt stages of tasks as used now.
    fn mark_used(&mut self, tasks: &[&GenerationTask]) {
        for task in tasks {
            for level in 0..task.prompt.stages.len() {
                let Some(stage) = self.stages.get_mut(&prefix_key(task, level)) else {
                    break;
                };
                stage.last_used = self.clock;
            }
        }
    }

    /// Computes the missing prompt stages of one level with the trunk, in one batch.
    fn prefill_trunk_level(
        &mut self,
        decoder: &PanelDecoder,
        tasks: &[&GenerationTask],
        level: usize,
    ) -> Result<(), Error> {
        let mut pending: Vec<PendingStage> = Vec::new();
        for task in tasks.iter().filter(|t| level < t.prompt.stages.len()) {
            let key = prefix_key(task, level);
            if let Some(stage) = self.stages.get_mut(&key) {
                stage.last_used = self.clock;
                self.reused_stages += 1;
                continue;
            }
            if pending.iter().any(|stage| stage.key == key) {
                self.reused_stages += 1;
                continue;
            }
            let cache = match self.parent_stage(task, level)? {
                Some(parent) => parent.trunk_cache.fork(),
                None => KvCache::new(decoder.trunk.depth()),
            };
            let SplicedPrompt { embeddings, image_ranges } = embed_stage(decoder, task, level)?;
            let bidirectional =
                if decoder.trunk.has_bidirectional_images() { image_ranges } else { Vec::new() };
            pending.push(PendingStage { key, input: embeddings, bidirectional, cache });
        }
        self.computed_stages += pending.len() as u64;
        let output =
            forward_batch(&mut pending, |x, sequences| decoder.trunk.forward_cached(x, sequences))?;
        let Some(output) = output else {
            return Ok(());
        };
        let outputs = split_output(&output, &pending)?;
        for (stage, trunk_output) in pending.into_iter().zip(outputs) {
            let PendingStage { key, bidirectional, cache, .. } = stage;
            let stage = CachedStage {
                token_count: trunk_output.dim(0)?,
                trunk_cache: Arc::new(cache),
                trunk_output,
                bidirectional,
                head_caches: HashMap::new(),
                last_used: self.clock,
            };
            self.stages.insert(key, stage);
        }
        Ok(())
    }

    /// Computes the missing prompt stages of one level with one head, from the outputs of the
    /// trunk. Returns them with their caches.
    fn prefill_head_level(
        &self,
        decoder: &PanelDecoder,
        member: usize,
        tasks: &[&GenerationTask],
        level: usize,
    ) -> Result<Vec<PendingStage>, Error> {
        let head = decoder.head(member)?;
        let mut pending: Vec<PendingStage> = Vec::new();
        let tasks = tasks.iter().filter(|task| task.member == member);
        for task in tasks.filter(|task| level < task.prompt.stages.len()) {
            let key = prefix_key(task, level);
            let stage = self.stages.get(&key).ok_or(Error::MissingPrefix)?;
            let is_pending = || pending.iter().any(|stage| stage.key == key);
            if stage.head_caches.contains_key(&member) || is_pending() {
                continue;
            }
            let cache = match self.parent_stage(task, level)? {
                Some(parent) => parent.head_cache(member)?.fork(),
                None => KvCache::new(head.depth()),
            };
            let (input, bidirectional) = (stage.trunk_output.clone(), stage.bidirectional.clone());
            pending.push(PendingStage { key, input, bidirectional, cache });
        }
        forward_batch(&mut pending, |x, sequences| head.fill_caches(x, sequences))?;
        Ok(pending)
    }

    /// Returns the prompt stage before a level; `None` for the first level.
    fn parent_stage(
        &self,
        task: &GenerationTask,
        level: usize,
    ) -> Result<Option<&CachedStage>, Error> {
        let Some(level) = level.checked_sub(1) else {
            return Ok(None);
        };
        let stage = self.stages.get(&prefix_key(task, level));
        stage.map(Some).ok_or(Error::MissingPrefix)
    }

    /// Removes the least recently used prompt stages until the others fit the memory for them. Keeps those
    /// of the current tasks, because the conclusion model may reuse them, and those whose keys and
    /// values a text or a later stage uses, because their memory would not be free.
    fn evict(&mut self, memory: CacheMemory) {
        let unused = self.stages.values().filter(|stage| !stage.trunk_cache.has_forks());
        let mut uses: Vec<(u64, u64)> =
            unused.map(|stage| (stage.last_used, stage.bytes(memory.token))).collect();
        uses.sort_unstable_by_key(|(last_used, _)| std::cmp::Reverse(*last_used));
        let mut total = 0;
        let first_excess = uses.into_iter().find(|(_, bytes)| {
            total += bytes;
            total > memory.for_prefixes()
        });
        if let Some((evicted, _)) = first_excess {
            self.stages.retain(|_, stage| {
                stage.last_used > evicted
                    || stage.last_used == self.clock
                    || stage.trunk_cache.has_forks()
            });
        }
    }
}

/// Runs one forward pass over all pending prompt stages. Returns its output; `None` if no stage is pending.
fn forward_batch<T>(
    pending: &mut [PendingStage],
    forward: impl FnOnce(&Tensor, &mut [CachedSequence]) -> candle::Result<T>,
) -> Result<Option<T>, Error> {
    if pending.is_empty() {
        return Ok(None);
    }
    let inputs: Vec<&Tensor> = pending.iter().map(|stage| &stage.input).collect();
    let lengths: Vec<usize> = inputs.iter().map(|x| x.dim(0)).collect::<Result<_, _>>()?;
    let x = Tensor::cat(&inputs, 0)?;
    let sequences = pending.iter_mut().zip(&lengths);
    let mut sequences: Vec<CachedSequence> = sequences
        .map(|(stage, length)| CachedSequence {
            new_tokens: *length,
            cache: &mut stage.cache,
            bidirectional: stage.bidirectional.clone(),
        })
        .collect();
    Ok(Some(forward(&x, &mut sequences)?))
}

/// Splits the output of a forward pass by prompt stage. The parts do not share memory, because each would keep the
/// output of the whole batch.
fn split_output(output: &Tensor, pending: &[PendingStage]) -> Result<Vec<Tensor>, Error> {
    let lengths = pending.iter().map(|stage| stage.input.dim(0));
    let lengths: Vec<usize> = lengths.collect::<Result<_, _>>()?;
    let parts = consecutive_ranges(lengths.into_iter()).into_iter().map(|rows| {
        let part = output.narrow(0, rows.start, rows.len())?;
        Ok(if pending.len() == 1 { part } else { part.force_contiguous()? })
    });
    parts.collect()
}

/// Returns the key of a prompt stage. The image is part of it only if these prompt stages contain
/// the image.
fn prefix_key(task: &GenerationTask, level: usize) -> PrefixKey {
    let stages = task.prompt.stages.iter().take(level + 1);
    let stages: Vec<Vec<PromptToken>> = stages.cloned().collect();
    let image = task
        .image
        .as_ref()
        .filter(|_| stages.iter().flatten().any(|t| *t == PromptToken::Image))
        .map(|image| image.key.clone());
    PrefixKey { stages, image }
}

/// Computes the embeddings of one prompt stage.
fn embed_stage(
    decoder: &PanelDecoder,
    task: &GenerationTask,
    level: usize,
) -> Result<SplicedPrompt, Error> {
    let mut segments = Vec::new();
    let mut text: Vec<u32> = Vec::new();
    let flush = |text: &mut Vec<u32>, segments: &mut Vec<PromptSegment>| {
        if !text.is_empty() {
            segments.push(PromptSegment::Text(decoder.trunk.embed(text)?));
            text.clear();
        }
        Ok::<_, Error>(())
    };
    for token in &task.prompt.stages[level] {
        match (token, &task.image) {
            (PromptToken::Token(id), _) => text.push(*id),
            (PromptToken::Image, Some(image)) => {
                flush(&mut text, &mut segments)?;
                segments.push(PromptSegment::Image(image.tokens.clone()));
            }
            (PromptToken::Image, None) => {
                return Err(Error::Template(
                    "the prompt contains an image, but the case has none".to_owned(),
                ));
            }
        }
    }
    flush(&mut text, &mut segments)?;
    Ok(splice(&segments)?)
}

/// Returns consecutive ranges with the given lengths.
fn consecutive_ranges(lengths: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    lengths
        .scan(0, |end, length| {
            let start = *end;
            *end += length;
            Some(start..*end)
        })
        .collect()
}

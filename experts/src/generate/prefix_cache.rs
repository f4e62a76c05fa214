//! Prefix cache: KV caches of prompt stages that several texts share.
//!
//! The trunk computes a stage once for all members. Each head computes it once for its member.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use acem3_projector::{PromptSegment, splice};
use candle::Tensor;

use super::panel_decoder::PanelDecoder;
use super::task::GenerationTask;
use crate::Error;
use crate::decoder::{CachedSequence, KvCache};
use crate::prompt::PromptToken;

/// Maximum number of tokens of the stages that are kept between batches.
const MAX_CACHED_TOKENS: usize = 4096;

/// Key of a stage: all stages up to and including it, and the image.
///
/// Equal tokens with other stage boundaries have another key, because other boundaries change the
/// summation order and with it the last bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PrefixKey {
    stages: Vec<Vec<PromptToken>>,
    image: Option<String>,
}

/// Computed stage of a prompt.
struct PrefixNode {
    trunk_cache: Arc<KvCache>,
    /// Output of the trunk for the tokens of the stage, as input of the heads.
    trunk_output: Tensor,
    /// Caches of the heads, by member.
    head_caches: HashMap<usize, Arc<KvCache>>,
    /// Number of tokens of the stage.
    token_count: usize,
    /// [`PrefixCache::clock`] at the last use.
    last_used: u64,
}

/// Stage that is not computed yet.
struct PendingPrefix {
    key: PrefixKey,
    /// Input rows of the trunk or head.
    input: Tensor,
    /// Cache of the earlier stages.
    cache: KvCache,
}

/// Computed prompt stages. A stage is reused only if all stages before it are equal, so the cache
/// does not change results.
#[derive(Default)]
pub struct PrefixCache {
    nodes: HashMap<PrefixKey, PrefixNode>,
    /// Number of calls of [`Self::prefill`].
    clock: u64,
    computed_stages: u64,
    reused_stages: u64,
}

impl PrefixNode {
    /// Returns the cache of a member's head.
    fn head_cache(&self, member: usize) -> Result<&Arc<KvCache>, Error> {
        self.head_caches.get(&member).ok_or(Error::MissingPrefix)
    }
}

impl PrefixCache {
    /// Returns the numbers of computed and reused stages.
    pub fn stats(&self) -> (u64, u64) {
        (self.computed_stages, self.reused_stages)
    }

    /// Returns the trunk cache and the head cache of each task's prompt. Computes missing stages.
    pub(super) fn prefill(
        &mut self,
        decoder: &PanelDecoder,
        tasks: &[&GenerationTask],
    ) -> Result<Vec<(KvCache, KvCache)>, Error> {
        self.clock += 1;
        let depth = tasks.iter().map(|t| t.prompt.0.len()).max().unwrap_or(0);
        for level in 0..depth {
            self.prefill_trunk_level(decoder, tasks, level)?;
            for member in 0..decoder.heads.len() {
                let tasks_of_member: Vec<&GenerationTask> = tasks
                    .iter()
                    .copied()
                    .filter(|t| t.member == member)
                    .collect();
                self.prefill_head_level(decoder, member, &tasks_of_member, level)?;
            }
        }
        let caches = tasks.iter().map(|task| {
            let Some(last) = task.prompt.0.len().checked_sub(1) else {
                // An empty prompt has no stages.
                return Ok::<_, Error>((
                    KvCache::new(decoder.trunk.depth()),
                    KvCache::new(decoder.head(task.member)?.depth()),
                ));
            };
            let node = self
                .nodes
                .get(&prefix_key(task, last))
                .ok_or(Error::MissingPrefix)?;
            let head_cache = node.head_cache(task.member)?;
            Ok((node.trunk_cache.fork(), head_cache.fork()))
        });
        let caches = caches.collect::<Result<_, _>>()?;
        self.evict();
        Ok(caches)
    }

    /// Computes the missing stages of one level with the trunk, in one batch.
    fn prefill_trunk_level(
        &mut self,
        decoder: &PanelDecoder,
        tasks: &[&GenerationTask],
        level: usize,
    ) -> Result<(), Error> {
        let mut pending: Vec<PendingPrefix> = Vec::new();
        for task in tasks.iter().filter(|t| level < t.prompt.0.len()) {
            let key = prefix_key(task, level);
            if let Some(node) = self.nodes.get_mut(&key) {
                node.last_used = self.clock;
                self.reused_stages += 1;
                continue;
            }
            if pending.iter().any(|prefix| prefix.key == key) {
                self.reused_stages += 1;
                continue;
            }
            let cache = match self.parent_stage(task, level)? {
                Some(parent) => parent.trunk_cache.fork(),
                None => KvCache::new(decoder.trunk.depth()),
            };
            let input = embed_stage(decoder, task, level)?;
            pending.push(PendingPrefix { key, input, cache });
        }
        self.computed_stages += pending.len() as u64;
        let outputs = forward_batch(&mut pending, |x, sequences| {
            decoder.trunk.forward_cached(x, sequences)
        })?;
        for (PendingPrefix { key, cache, .. }, trunk_output) in pending.into_iter().zip(outputs) {
            let node = PrefixNode {
                token_count: trunk_output.dim(0)?,
                trunk_cache: Arc::new(cache),
                trunk_output,
                head_caches: HashMap::new(),
                last_used: self.clock,
            };
            self.nodes.insert(key, node);
        }
        Ok(())
    }

    /// Computes the missing stages of one level with one head, from the outputs of the trunk.
    fn prefill_head_level(
        &mut self,
        decoder: &PanelDecoder,
        member: usize,
        tasks: &[&GenerationTask],
        level: usize,
    ) -> Result<(), Error> {
        let head = decoder.head(member)?;
        let mut pending: Vec<PendingPrefix> = Vec::new();
        for task in tasks.iter().filter(|t| level < t.prompt.0.len()) {
            let key = prefix_key(task, level);
            let node = self.nodes.get(&key).ok_or(Error::MissingPrefix)?;
            let is_pending = || pending.iter().any(|prefix| prefix.key == key);
            if node.head_caches.contains_key(&member) || is_pending() {
                continue;
            }
            let cache = match self.parent_stage(task, level)? {
                Some(parent) => parent.head_cache(member)?.fork(),
                None => KvCache::new(head.depth()),
            };
            let input = node.trunk_output.clone();
            pending.push(PendingPrefix { key, input, cache });
        }
        forward_batch(&mut pending, |x, sequences| {
            head.forward_cached(x, sequences)
        })?;
        for PendingPrefix { key, cache, .. } in pending {
            if let Some(node) = self.nodes.get_mut(&key) {
                node.head_caches.insert(member, Arc::new(cache));
            }
        }
        Ok(())
    }

    /// Returns the stage before a level of a prompt, `None` for the first level.
    fn parent_stage(
        &self,
        task: &GenerationTask,
        level: usize,
    ) -> Result<Option<&PrefixNode>, Error> {
        let Some(level) = level.checked_sub(1) else {
            return Ok(None);
        };
        let node = self.nodes.get(&prefix_key(task, level));
        node.map(Some).ok_or(Error::MissingPrefix)
    }

    /// Removes the least recently used stages above [`MAX_CACHED_TOKENS`].
    fn evict(&mut self) {
        let nodes = self.nodes.values();
        let mut uses: Vec<(u64, usize)> = nodes.map(|n| (n.last_used, n.token_count)).collect();
        uses.sort_unstable_by_key(|(last_used, _)| std::cmp::Reverse(*last_used));
        let mut total = 0;
        let first_excess = uses.into_iter().find(|(_, token_count)| {
            total += token_count;
            total > MAX_CACHED_TOKENS
        });
        if let Some((evicted, _)) = first_excess {
            // The conclusion model may reuse the stages of the current batch.
            self.nodes
                .retain(|_, node| node.last_used > evicted || node.last_used == self.clock);
        }
    }
}

/// Runs a forward pass over all stages and splits the output by stage.
fn forward_batch(
    pending: &mut [PendingPrefix],
    forward: impl FnOnce(&Tensor, &mut [CachedSequence]) -> candle::Result<Tensor>,
) -> Result<Vec<Tensor>, Error> {
    if pending.is_empty() {
        return Ok(Vec::new());
    }
    let inputs: Vec<&Tensor> = pending.iter().map(|prefix| &prefix.input).collect();
    let lengths: Vec<usize> = inputs.iter().map(|x| x.dim(0)).collect::<Result<_, _>>()?;
    let x = Tensor::cat(&inputs, 0)?;
    let sequences = pending.iter_mut().zip(&lengths);
    let mut sequences: Vec<CachedSequence> = sequences
        .map(|(prefix, length)| CachedSequence {
            new_tokens: *length,
            cache: &mut prefix.cache,
        })
        .collect();
    let output = forward(&x, &mut sequences)?;
    consecutive_ranges(lengths.into_iter())
        .into_iter()
        .map(|rows| Ok(output.narrow(0, rows.start, rows.len())?.contiguous()?))
        .collect()
}

/// Returns the key of a stage. The image is part of it only if the stages contain the image.
fn prefix_key(task: &GenerationTask, level: usize) -> PrefixKey {
    let stages: Vec<Vec<PromptToken>> = task.prompt.0.iter().take(level + 1).cloned().collect();
    let image = task
        .image
        .as_ref()
        .filter(|_| stages.iter().flatten().any(|t| *t == PromptToken::Image))
        .map(|image| image.key.clone());
    PrefixKey { stages, image }
}

/// Computes the embeddings of one stage, `(t, c)`.
fn embed_stage(
    decoder: &PanelDecoder,
    task: &GenerationTask,
    level: usize,
) -> Result<Tensor, Error> {
    let mut segments = Vec::new();
    let mut text: Vec<u32> = Vec::new();
    let flush = |text: &mut Vec<u32>, segments: &mut Vec<PromptSegment>| {
        if !text.is_empty() {
            segments.push(PromptSegment::Text(decoder.trunk.embed(text)?));
            text.clear();
        }
        Ok::<_, Error>(())
    };
    for token in &task.prompt.0[level] {
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
    Ok(splice(&segments)?.embeddings)
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

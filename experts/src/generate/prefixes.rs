//! The prefix cache: prompt stages that several texts share are computed once.
//!
//! The trunk computes a stage once for all members; each head computes it once for its own texts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use acem3_projector::{Segment, splice};
use candle::Tensor;

use super::panel_decoder::PanelDecoder;
use super::task::Task;
use crate::Error;
use crate::decoder::{KvCache, Row};
use crate::prompt::Slot;

/// Tokens whose stages are kept from one batch to the next.
const KEPT: usize = 4096;

/// A stage is known by all stages up to its end and by its image. Equal tokens that were cut
/// elsewhere are another key: adding up in other pieces would move the last bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    stages: Vec<Vec<Slot>>,
    image: Option<String>,
}

struct Node {
    trunk: Arc<KvCache>,
    /// The trunk's output for the stage's own tokens, for heads that come later.
    hidden: Tensor,
    heads: HashMap<usize, Arc<KvCache>>,
    /// Tokens of the stage.
    tokens: usize,
    /// When it was last used.
    used: u64,
}

/// A stage that is not known yet: its key, what comes in, and the caches of the stages before it.
struct Fresh {
    key: Key,
    x: Tensor,
    cache: KvCache,
}

/// Computed stages of prompts. They are only reused where all stages before them are the same, and
/// they change no result.
#[derive(Default)]
pub struct Prefixes {
    nodes: HashMap<Key, Node>,
    clock: u64,
    computed: u64,
    reused: u64,
}

impl Prefixes {
    /// Stages computed and stages found ready, for those who measure.
    pub fn counts(&self) -> (u64, u64) {
        (self.computed, self.reused)
    }

    /// The caches of every task's prompt, trunk and head, for the text to go on from.
    pub(super) fn prefill(
        &mut self,
        decoder: &PanelDecoder,
        tasks: &[&Task],
    ) -> Result<Vec<(KvCache, KvCache)>, Error> {
        self.clock += 1;
        let depth = tasks.iter().map(|t| t.prompt.0.len()).max().unwrap_or(0);
        for level in 0..depth {
            self.trunk_level(decoder, tasks, level)?;
            for member in 0..decoder.heads.len() {
                let own: Vec<&Task> = tasks
                    .iter()
                    .copied()
                    .filter(|t| t.member == member)
                    .collect();
                self.head_level(decoder, member, &own, level)?;
            }
        }
        let caches = tasks.iter().map(|task| {
            let Some(last) = task.prompt.0.len().checked_sub(1) else {
                // A prompt without stages is empty.
                return Ok::<_, Error>((
                    KvCache::new(decoder.trunk.depth()),
                    KvCache::new(decoder.head(task.member)?.depth()),
                ));
            };
            let node = self.nodes.get(&key(task, last)).ok_or(Error::Unknown)?;
            let head = node.heads.get(&task.member).ok_or(Error::Unknown)?;
            Ok((node.trunk.fork(), head.fork()))
        });
        let caches = caches.collect::<Result<_, _>>()?;
        self.trim();
        Ok(caches)
    }

    /// Computes the trunk for stages of one level that are not known yet, all in one pass.
    fn trunk_level(
        &mut self,
        decoder: &PanelDecoder,
        tasks: &[&Task],
        level: usize,
    ) -> Result<(), Error> {
        let mut fresh: Vec<Fresh> = Vec::new();
        for task in tasks.iter().filter(|t| level < t.prompt.0.len()) {
            let key = key(task, level);
            if let Some(node) = self.nodes.get_mut(&key) {
                node.used = self.clock;
                self.reused += 1;
                continue;
            }
            if fresh.iter().any(|f| f.key == key) {
                self.reused += 1;
                continue;
            }
            let cache = match self.before(task, level)? {
                Some(node) => node.trunk.fork(),
                None => KvCache::new(decoder.trunk.depth()),
            };
            let x = embed(decoder, task, level)?;
            fresh.push(Fresh { key, x, cache });
        }
        self.computed += fresh.len() as u64;
        let outputs = in_one_pass(&mut fresh, |x, rows| decoder.trunk.forward_cached(x, rows))?;
        for (Fresh { key, cache, .. }, hidden) in fresh.into_iter().zip(outputs) {
            let node = Node {
                tokens: hidden.dim(0)?,
                trunk: Arc::new(cache),
                hidden,
                heads: HashMap::new(),
                used: self.clock,
            };
            self.nodes.insert(key, node);
        }
        Ok(())
    }

    /// Computes one head for stages of one level, from what the trunk gave.
    fn head_level(
        &mut self,
        decoder: &PanelDecoder,
        member: usize,
        tasks: &[&Task],
        level: usize,
    ) -> Result<(), Error> {
        let head = decoder.head(member)?;
        let mut fresh: Vec<Fresh> = Vec::new();
        for task in tasks.iter().filter(|t| level < t.prompt.0.len()) {
            let key = key(task, level);
            let node = self.nodes.get(&key).ok_or(Error::Unknown)?;
            if node.heads.contains_key(&member) || fresh.iter().any(|f| f.key == key) {
                continue;
            }
            let cache = match self.before(task, level)? {
                Some(before) => before.heads.get(&member).ok_or(Error::Unknown)?.fork(),
                None => KvCache::new(head.depth()),
            };
            let x = node.hidden.clone();
            fresh.push(Fresh { key, x, cache });
        }
        in_one_pass(&mut fresh, |x, rows| head.forward_cached(x, rows))?;
        for Fresh { key, cache, .. } in fresh {
            if let Some(node) = self.nodes.get_mut(&key) {
                node.heads.insert(member, Arc::new(cache));
            }
        }
        Ok(())
    }

    /// The stage before this one of a prompt; none before the first.
    fn before(&self, task: &Task, level: usize) -> Result<Option<&Node>, Error> {
        let Some(level) = level.checked_sub(1) else {
            return Ok(None);
        };
        let node = self.nodes.get(&key(task, level));
        node.map(Some).ok_or(Error::Unknown)
    }

    /// Forgets the stages that were not used for longest.
    fn trim(&mut self) {
        let mut ages: Vec<(u64, usize)> = self.nodes.values().map(|n| (n.used, n.tokens)).collect();
        ages.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
        let mut tokens = 0;
        let spent = ages.into_iter().find(|(_, n)| {
            tokens += n;
            tokens > KEPT
        });
        if let Some((used, _)) = spent {
            // What the batch at hand used may be used by its conclusion.
            self.nodes
                .retain(|_, node| node.used > used || node.used == self.clock);
        }
    }
}

/// Computes stages together; each stage's part of the output.
fn in_one_pass(
    fresh: &mut [Fresh],
    forward: impl FnOnce(&Tensor, &mut [Row]) -> candle::Result<Tensor>,
) -> Result<Vec<Tensor>, Error> {
    if fresh.is_empty() {
        return Ok(Vec::new());
    }
    let parts: Vec<&Tensor> = fresh.iter().map(|f| &f.x).collect();
    let lengths: Vec<usize> = parts.iter().map(|x| x.dim(0)).collect::<Result<_, _>>()?;
    let x = Tensor::cat(&parts, 0)?;
    let rows = fresh.iter_mut().zip(&lengths);
    let mut rows: Vec<Row> = rows
        .map(|(f, n)| Row {
            tokens: *n,
            cache: &mut f.cache,
        })
        .collect();
    let output = forward(&x, &mut rows)?;
    stretches(lengths.into_iter())
        .into_iter()
        .map(|place| Ok(output.narrow(0, place.start, place.len())?.contiguous()?))
        .collect()
}

fn key(task: &Task, level: usize) -> Key {
    let stages: Vec<Vec<Slot>> = task.prompt.0.iter().take(level + 1).cloned().collect();
    let image = task
        .image
        .as_ref()
        .filter(|_| stages.iter().flatten().any(|slot| *slot == Slot::Image))
        .map(|i| i.key.clone());
    Key { stages, image }
}

/// The embeddings of one stage.
fn embed(decoder: &PanelDecoder, task: &Task, level: usize) -> Result<Tensor, Error> {
    let mut segments = Vec::new();
    let mut text: Vec<u32> = Vec::new();
    let flush = |text: &mut Vec<u32>, segments: &mut Vec<Segment>| {
        if !text.is_empty() {
            segments.push(Segment::Text(decoder.trunk.embed(text)?));
            text.clear();
        }
        Ok::<_, Error>(())
    };
    for slot in &task.prompt.0[level] {
        match (slot, &task.image) {
            (Slot::Token(token), _) => text.push(*token),
            (Slot::Image, Some(image)) => {
                flush(&mut text, &mut segments)?;
                segments.push(Segment::Image(image.tokens.clone()));
            }
            (Slot::Image, None) => {
                return Err(Error::Template(
                    "the prompt has an image, the case has none".to_owned(),
                ));
            }
        }
    }
    flush(&mut text, &mut segments)?;
    Ok(splice(&segments)?.embeddings)
}

/// The places of consecutive stretches of the given lengths.
fn stretches(lengths: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    lengths
        .scan(0, |end, n| {
            let start = *end;
            *end += n;
            Some(start..*end)
        })
        .collect()
}

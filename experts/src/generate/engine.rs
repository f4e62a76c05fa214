//! The panel's decoder at work: shared trunk, one head for each member.

use std::ops::Range;
use std::sync::Arc;

use candle::Tensor;

use super::prefixes::Prefixes;
use super::writer::Writer;
use crate::decoder::{DecoderConfig, Head, Row, Trunk};
use crate::prompt::{STOP, Slot, StagedPrompt, TokenStep};
use crate::{Error, Rating, TextTokenizer};

/// An image as the decoder sees it.
#[derive(Clone, Debug)]
pub struct ImageTokens {
    /// Equal for equal images only (a hash of the image's bytes, say).
    pub key: String,
    /// `(p, c)`.
    pub tokens: Tensor,
}

/// One text to be written.
#[derive(Clone, Debug)]
pub struct Task {
    /// Who writes it: the place of the head in the engine.
    pub member: usize,
    /// What it reads.
    pub prompt: StagedPrompt,
    /// The image in the prompt.
    pub image: Option<Arc<ImageTokens>>,
    /// The form of the text.
    pub format: Arc<[TokenStep]>,
}

/// How texts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most tokens of one free text.
    pub analysis_tokens: usize,
    /// Leave every free text empty: faster, and only as good as the panel is without reasons.
    pub scores_only: bool,
}

/// Trunk, heads and tokenizer of a panel.
pub struct Engine {
    pub(super) trunk: Trunk,
    pub(super) heads: Vec<Head>,
    tokenizer: TextTokenizer,
    settings: Settings,
    stop: Vec<u32>,
    /// Whether each token may stand in a free text.
    writable: Vec<bool>,
    context: usize,
}

impl Engine {
    /// An engine of loaded parts.
    pub fn new(
        trunk: Trunk,
        heads: Vec<Head>,
        tokenizer: TextTokenizer,
        config: &DecoderConfig,
        settings: Settings,
    ) -> Result<Self, Error> {
        if tokenizer.vocabulary() > config.vocab_size {
            return Err(Error::Tokenizer(format!(
                "it has {} tokens, the model's vocabulary only {}",
                tokenizer.vocabulary(),
                config.vocab_size
            )));
        }
        let known = tokenizer.vocabulary();
        // A free text ends with its line: a token that goes on after the break would spoil the form.
        let writable = |t| {
            let goes_on = || {
                let text = tokenizer.decode(&[t])?;
                let rest = text.split_once(STOP).map(|(_, rest)| rest);
                Ok::<_, Error>(rest.is_some_and(|rest| !rest.is_empty()))
            };
            Ok((t as usize) < known && !tokenizer.is_special(t) && !goes_on()?)
        };
        let writable = (0..config.vocab_size as u32).map(writable);
        let writable = writable.collect::<Result<_, Error>>()?;
        let stop = tokenizer.free(STOP)?;
        let context = config.max_position_embeddings;
        Ok(Self {
            trunk,
            heads,
            tokenizer,
            settings,
            stop,
            writable,
            context,
        })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &TextTokenizer {
        &self.tokenizer
    }

    /// How texts are written.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Writes a text for each task: one rating for each score of its form, in order. A task that
    /// does not fit into the context, lacks its image or leads to numbers that are none fails alone.
    pub fn write(
        &self,
        tasks: &[Task],
        prefixes: &mut Prefixes,
    ) -> Result<Vec<Result<Vec<Rating>, Error>>, Error> {
        let mut results: Vec<Result<Vec<Rating>, Error>> = Vec::with_capacity(tasks.len());
        let mut fitting = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            results.push(self.fits(task).map(|()| Vec::new()));
            if results[i].is_ok() {
                fitting.push((i, task));
            }
        }
        // Members one after the other, so that each head's rows lie together.
        fitting.sort_by_key(|(_, task)| task.member);
        let chosen: Vec<&Task> = fitting.iter().map(|(_, task)| *task).collect();
        let mut writers = Vec::with_capacity(chosen.len());
        for ((trunk, head), (i, task)) in prefixes.prefill(self, &chosen)?.into_iter().zip(&fitting)
        {
            writers.push((*i, Writer::new(task, trunk, head, self)?));
        }
        while writers.iter().any(|(_, writer)| !writer.is_done()) {
            let mut active: Vec<&mut Writer> = writers
                .iter_mut()
                .map(|(_, w)| w)
                .filter(|w| !w.is_done())
                .collect();
            self.step(&mut active)?;
        }
        for (i, writer) in writers {
            results[i] = writer.ratings();
        }
        Ok(results)
    }

    /// Feeds every active text's pending tokens and lets it decide its next one.
    fn step(&self, active: &mut [&mut Writer]) -> Result<(), Error> {
        let pending: Vec<u32> = active
            .iter()
            .flat_map(|w| w.pending.iter().copied())
            .collect();
        let hidden = {
            let mut rows: Vec<Row> = active
                .iter_mut()
                .map(|w| Row {
                    tokens: w.pending.len(),
                    cache: &mut w.trunk,
                })
                .collect();
            self.trunk
                .forward_cached(&self.trunk.embed(&pending)?, &mut rows)?
        };
        let (mut first, mut place) = (0, 0);
        while first < active.len() {
            let member = active[first].member;
            let count = active[first..]
                .iter()
                .take_while(|w| w.member == member)
                .count();
            let writers = &mut active[first..first + count];
            let tokens: usize = writers.iter().map(|w| w.pending.len()).sum();
            let logits = self.head_step(member, &hidden.narrow(0, place, tokens)?, writers)?;
            for (writer, logits) in writers.iter_mut().zip(logits) {
                writer.decide(&logits, self);
            }
            first += count;
            place += tokens;
        }
        Ok(())
    }

    fn head_step(
        &self,
        member: usize,
        hidden: &Tensor,
        writers: &mut [&mut Writer],
    ) -> Result<Vec<Vec<f32>>, Error> {
        let head = self.head(member)?;
        let mut rows: Vec<Row> = writers
            .iter_mut()
            .map(|w| Row {
                tokens: w.pending.len(),
                cache: &mut w.head,
            })
            .collect();
        let hidden = head.forward_cached(&hidden.contiguous()?, &mut rows)?;
        let ends = rows.iter().scan(0u32, |end, row| {
            *end += row.tokens as u32;
            Some(*end - 1)
        });
        let ends = Tensor::from_iter(ends, hidden.device())?;
        let logits = head.logits(&hidden.index_select(&ends, 0)?)?;
        Ok(logits.to_dtype(candle::DType::F32)?.to_vec2::<f32>()?)
    }

    pub(super) fn head(&self, member: usize) -> Result<&Head, Error> {
        let missing = || {
            Error::Candle(candle::Error::Msg(format!(
                "the panel has no head {member}"
            )))
        };
        self.heads.get(member).ok_or_else(missing)
    }

    pub(super) fn stop(&self) -> &[u32] {
        &self.stop
    }

    /// The most probable token that may stand in a free text; the first one on a tie.
    pub(super) fn choose(&self, logits: &[f32]) -> u32 {
        let mut best: Option<(u32, f32)> = None;
        for (token, (logit, writable)) in (0u32..).zip(logits.iter().zip(&self.writable)) {
            if *writable && best.is_none_or(|(_, most)| *logit > most) {
                best = Some((token, *logit));
            }
        }
        best.map_or(0, |(token, _)| token)
    }

    /// Most tokens of one free text.
    pub(super) fn budget(&self) -> usize {
        if self.settings.scores_only {
            0
        } else {
            self.settings.analysis_tokens
        }
    }

    fn fits(&self, task: &Task) -> Result<(), Error> {
        self.head(task.member)?;
        let mut slots = task.prompt.0.iter().flatten();
        if task.image.is_none() && slots.any(|slot| *slot == Slot::Image) {
            return Err(Error::Template(
                "the prompt has an image, the case has none".to_owned(),
            ));
        }
        let image = task.image.as_ref().map_or(Ok(0), |i| i.tokens.dim(0))?;
        let prompt = task.prompt.len(image);
        let answer = task.format.iter().map(|step| match step {
            TokenStep::Feed(tokens) => tokens.len(),
            TokenStep::Free => self.budget() + self.stop.len(),
            TokenStep::Score(_) => 1,
        });
        let answer = answer.sum();
        if prompt + answer > self.context {
            return Err(Error::TooLong {
                prompt,
                answer,
                context: self.context,
            });
        }
        Ok(())
    }
}

/// The places of consecutive stretches of the given lengths.
pub(super) fn stretches(lengths: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    lengths
        .scan(0, |end, n| {
            let start = *end;
            *end += n;
            Some(start..*end)
        })
        .collect()
}

//! The panel's decoder at work: shared trunk, one head for each member.

use candle::Tensor;

use super::panel_decoder::PanelDecoder;
use super::prefixes::Prefixes;
use super::sampler::GreedySampler;
use super::task::{Settings, Task};
use super::writer::Writer;
use crate::decoder::{DecoderConfig, Head, Row, Trunk};
use crate::prompt::{Slot, TokenStep};
use crate::{Error, Rating, TextTokenizer};

/// Trunk, heads and tokenizer of a panel.
pub struct Engine {
    decoder: PanelDecoder,
    sampler: GreedySampler,
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
        Ok(Self {
            decoder: PanelDecoder { trunk, heads },
            sampler: GreedySampler::new(tokenizer, config.vocab_size, settings)?,
            context: config.max_position_embeddings,
        })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &TextTokenizer {
        &self.sampler.tokenizer
    }

    /// How texts are written.
    pub fn settings(&self) -> Settings {
        self.sampler.settings
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
        for ((trunk, head), (i, task)) in prefixes
            .prefill(&self.decoder, &chosen)?
            .into_iter()
            .zip(&fitting)
        {
            writers.push((*i, Writer::new(task, trunk, head, &self.sampler)?));
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
            let trunk = &self.decoder.trunk;
            trunk.forward_cached(&trunk.embed(&pending)?, &mut rows)?
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
                writer.decide(&logits, &self.sampler);
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
        let head = self.decoder.head(member)?;
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

    fn fits(&self, task: &Task) -> Result<(), Error> {
        self.decoder.head(task.member)?;
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
            TokenStep::Free => self.sampler.budget() + self.sampler.stop.len(),
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

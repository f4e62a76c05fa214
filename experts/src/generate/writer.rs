//! One text in the making: where it stands in its form, and what it has written.

use std::sync::Arc;

use super::sampler::GreedySampler;
use super::task::Task;
use crate::decoder::KvCache;
use crate::prompt::{STOP, TokenStep, one_line};
use crate::{Error, Rating, Score};

pub(super) struct Writer {
    pub(super) member: usize,
    pub(super) trunk: KvCache,
    pub(super) head: KvCache,
    /// Tokens the model has not seen yet.
    pub(super) pending: Vec<u32>,
    format: Arc<[TokenStep]>,
    step: usize,
    free: Vec<u32>,
    analysis: String,
    cut: bool,
    ratings: Vec<Rating>,
    failed: Option<Error>,
}

impl Writer {
    pub(super) fn new(
        task: &Task,
        trunk: KvCache,
        head: KvCache,
        sampler: &GreedySampler,
    ) -> Result<Self, Error> {
        let mut writer = Self {
            member: task.member,
            trunk,
            head,
            pending: Vec::new(),
            format: task.format.clone(),
            step: 0,
            free: Vec::new(),
            analysis: String::new(),
            cut: false,
            ratings: Vec::new(),
            failed: None,
        };
        writer.feed(sampler);
        if writer.pending.is_empty() && !writer.is_done() {
            return Err(Error::Template(
                "an evaluation must begin with fixed text".to_owned(),
            ));
        }
        Ok(writer)
    }

    pub(super) fn is_done(&self) -> bool {
        self.failed.is_some() || self.step >= self.format.len()
    }

    pub(super) fn ratings(self) -> Result<Vec<Rating>, Error> {
        self.failed.map_or(Ok(self.ratings), Err)
    }

    /// Goes on to the next place where the model decides.
    fn feed(&mut self, sampler: &GreedySampler) {
        let format = self.format.clone();
        while let Some(step) = format.get(self.step) {
            match step {
                TokenStep::Feed(tokens) => self.pending.extend(tokens),
                TokenStep::Free if sampler.budget() == 0 => {
                    self.pending.extend(&sampler.stop);
                    self.analysis.clear();
                    self.cut = !sampler.settings.scores_only;
                }
                TokenStep::Free | TokenStep::Score(_) => return,
            }
            self.step += 1;
        }
    }

    /// Takes the logits after the pending tokens. What goes wrong ends this text alone.
    pub(super) fn decide(&mut self, logits: &[f32], sampler: &GreedySampler) {
        self.failed = self.next(logits, sampler).err();
    }

    fn next(&mut self, logits: &[f32], sampler: &GreedySampler) -> Result<(), Error> {
        self.pending.clear();
        if !logits.iter().all(|l| l.is_finite()) {
            return Err(Error::NotFinite);
        }
        let format = self.format.clone();
        match format.get(self.step) {
            Some(TokenStep::Score(tokens)) => {
                let score = Score::from_logits(
                    tokens.map(|t| logits.get(t as usize).copied().unwrap_or(f32::MIN)),
                );
                self.pending.push(tokens[usize::from(score.value)]);
                let analysis = std::mem::take(&mut self.analysis);
                self.ratings.push(Rating {
                    analysis,
                    cut: self.cut,
                    score,
                });
                self.step += 1;
                self.feed(sampler);
            }
            Some(TokenStep::Free) => {
                let token = sampler.choose(logits);
                self.free.push(token);
                self.pending.push(token);
                let text = sampler.tokenizer.decode(&self.free)?;
                let stopped = text.contains(STOP);
                let spent = self.free.len() >= sampler.budget();
                if stopped || spent {
                    if !stopped {
                        self.pending.extend(&sampler.stop);
                    }
                    self.cut = !stopped;
                    self.analysis = one_line(text.split(STOP).next().unwrap_or_default());
                    self.free.clear();
                    self.step += 1;
                    self.feed(sampler);
                }
            }
            Some(TokenStep::Feed(_)) | None => {}
        }
        Ok(())
    }
}

//! Evaluations that somebody has written, to be learned as they stand: a file of prompts and completions.
//!
//! In a curriculum they come in three blocks of equal length: the lower half by quality, all of them, and
//! the upper half (`AutoMedEval` §3.2).

use std::ops::Range;
use std::path::{Path, PathBuf};

use acem3_experts::prompt::Piece;
use acem3_experts::train::Sequence;
use anyhow::{Context, Result, bail};
use candle_nn::VarBuilder;
use serde::{Deserialize, Serialize};

use super::stage::VALIDATION_AT;
use crate::training::config::validation_split::split;
use crate::training::preferences::data;
use crate::training::preferences::data::EvaluationExample;
use crate::training::preferences::file_sequences::FileSequenceBuilder;
use crate::training::preferences::preference_sequence::RewardTokenRole;
use crate::training::stages::activation_file::ActivationDtype;
use crate::training::stages::epoch_sampler::EpochSampler;
use crate::training::stages::frozen_cache::{CHUNK, FrozenCache, FrozenCacheWriter, rows_file};
use crate::training::stages::task::{StageContext, each, fits};

/// What a stage of evaluations learns from in place of drawn examples.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Lines of `prompt`, `completion` (or `chosen`), `images`, `member` and `quality`, as `acem3 data
    /// preferences` writes and TRL reads them; relative to the configuration. A tenth of them, from all over it, validates.
    pub file: PathBuf,
    /// Whether they come in the order of their quality.
    #[serde(default)]
    pub curriculum: bool,
    /// The type in which what frozen layers make of them is kept on disk, so that it is computed once; computed in every
    /// step where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<ActivationDtype>,
}

/// The evaluations of a stage.
pub(crate) struct EvaluationSet<'a> {
    lectern: StageContext<'a>,
    path: &'a Path,
    /// Those that a model learns from, then those that validate it.
    all: Vec<EvaluationExample>,
    learned: usize,
    /// The learned ones' places, by block.
    blocks: Vec<Vec<usize>>,
    /// Examples of a whole block.
    length: u64,
    /// What frozen layers make of them, and the place of each there, if it fits into the context.
    kept: Option<(FrozenCache, Vec<Option<usize>>)>,
}

impl<'a> EvaluationSet<'a> {
    /// Those of a stage's file for a member, or for all as one; `None` where the stage draws its examples.
    pub(crate) fn open(lectern: StageContext<'a>, member: Option<usize>) -> Result<Option<Self>> {
        let settings = lectern.settings;
        let Some(config) = &settings.evaluations else {
            return Ok(None);
        };
        let path = config.file.display();
        let (mut all, _) = data::evaluations(&config.file)?;
        let learns = |own: Option<usize>| member.is_none() || own.is_none() || own == member;
        all.retain(|evaluation| learns(evaluation.member));
        let (all, learned) = split(all);
        if learned == 0 {
            bail!(
                "{path}: {} to learn from, expected at least two\n\
                 hint: a tenth validates; lines with another `member` are another's",
                crate::support::text::plural(all.len() as u64, "evaluation")
            );
        }
        let blocks = if config.curriculum {
            by_quality(&all[..learned]).with_context(|| path.to_string())?
        } else {
            vec![(0..learned).collect()]
        };
        let examples = settings.steps * settings.batch as u64;
        Ok(Some(Self {
            lectern,
            path: &config.file,
            all,
            learned,
            length: examples.div_ceil(blocks.len() as u64).max(1),
            blocks,
            kept: None,
        }))
    }

    /// How many are learned from.
    pub(crate) fn len(&self) -> usize {
        self.learned
    }

    /// The prompt of the first.
    pub(crate) fn prompt(&self) -> &[Piece] {
        self.all.first().map_or(&[], |first| &first.prompt)
    }

    /// Layers of the decoder that are computed no more.
    pub(crate) fn depth(&self) -> Option<usize> {
        self.kept.as_ref().map(|(kept, _)| kept.depth())
    }

    /// Computes what frozen layers make of them, where that is wanted and not done yet; `vb` has the weights with which
    /// the stage begins, `name` is that of its files. False when the person asked to stop.
    pub(crate) fn keep(&mut self, vb: &VarBuilder, out: &Path, name: &str) -> Result<bool> {
        let config = self.lectern.settings.evaluations.as_ref();
        let Some(store) = config.and_then(|config| config.store) else {
            return Ok(true);
        };
        let live = self.lectern.live;
        let mut keeper = FrozenCacheWriter::begin(self.lectern, vb, (rows_file(out, name), store))?;
        let (mut places, mut fitting) = (Vec::new(), 0);
        let all: Vec<usize> = (0..self.all.len()).collect();
        for chunk in all.chunks(CHUNK as usize) {
            if live.interrupted() {
                return Ok(false);
            }
            if keeper.computes() {
                let (at, all) = (places.len(), all.len());
                let state = format!("the frozen part is computed, {at} of {all} evaluations");
                live.report(name, 0, &state);
            }
            let mut sequences = self.written(chunk)?;
            let context = self.lectern.config.model.decoder.max_position_embeddings;
            sequences.retain(|sequence| {
                let fits = fits(sequence, context, live);
                places.push(fits.then_some(fitting));
                fitting += usize::from(fits);
                fits
            });
            keeper.add(sequences)?;
        }
        self.kept = Some((keeper.finish()?, places));
        Ok(true)
    }

    /// The sequences of these numbers.
    pub(crate) fn sequences(&self, numbers: Range<u64>) -> Result<Vec<Sequence>> {
        let drawn = self.drawn(numbers);
        let Some((kept, places)) = &self.kept else {
            return self.written(&drawn);
        };
        let places = drawn.into_iter().filter_map(|i| places[i]);
        places.map(|place| kept.part(place, &[1])).collect()
    }

    /// The evaluations at these places as sequences.
    fn written(&self, places: &[usize]) -> Result<Vec<Sequence>> {
        let config = self.lectern.config;
        let writer = FileSequenceBuilder {
            tokenizer: self.lectern.scribe.tokenizer(),
            processor: &config.processor(),
            image_tokens: self.lectern.scribe.image_tokens(),
            reward: RewardTokenRole::Absent,
        };
        let leads = [
            &config.dialogue.lead,
            self.lectern.settings.lead().unwrap_or_default(),
        ];
        each(places, |place| {
            let evaluation = &self.all[*place];
            let written = writer.evaluation(evaluation, leads);
            written.with_context(|| self.line(evaluation))
        })
    }

    /// Where an evaluation stands.
    fn line(&self, evaluation: &EvaluationExample) -> String {
        format!("{}, line {}", self.path.display(), evaluation.line)
    }

    /// The places of the evaluations of these numbers: block by block, every one once before any comes again.
    fn drawn(&self, numbers: Range<u64>) -> Vec<usize> {
        if numbers.start >= VALIDATION_AT {
            return (self.learned..self.all.len()).collect();
        }
        let (mut drawn, mut at) = (Vec::new(), numbers.start);
        while at < numbers.end {
            let block = ((at / self.length) as usize).min(self.blocks.len() - 1);
            let begin = block as u64 * self.length;
            let end = if block + 1 < self.blocks.len() {
                numbers.end.min(begin + self.length)
            } else {
                numbers.end
            };
            let places = &self.blocks[block];
            let deck = EpochSampler {
                seed: self.lectern.config.seed ^ (block as u64) << 32,
                n: places.len(),
            };
            let within = deck.places(at - begin..end - begin).into_iter();
            drawn.extend(within.map(|place| places[place]));
            at = end;
        }
        drawn
    }

    /// Whether all images are there that it names.
    pub(crate) fn check_images(&self) -> Result<()> {
        for evaluation in &self.all {
            let image = evaluation.image.as_deref();
            data::there(image).with_context(|| self.line(evaluation))?;
        }
        Ok(())
    }
}

/// The lower half by quality, all, and the upper half; of equals, those that stand first are lower.
fn by_quality(all: &[EvaluationExample]) -> Result<Vec<Vec<usize>>> {
    let mut places: Vec<(f64, usize)> = Vec::new();
    for (i, evaluation) in all.iter().enumerate() {
        let quality = evaluation.quality.with_context(|| {
            format!(
                "line {} has no `quality`, and the stage wants them in its order\n\
                 hint: give each line a number, or leave `curriculum` out",
                evaluation.line
            )
        })?;
        places.push((quality, i));
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let order: Vec<usize> = places.into_iter().map(|(_, place)| place).collect();
    let (low, high) = order.split_at(order.len().div_ceil(2));
    let high = if high.is_empty() { low } else { high };
    Ok(vec![low.to_vec(), order.clone(), high.to_vec()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(qualities: &[f64]) -> Vec<EvaluationExample> {
        let one = |(i, quality): (usize, &f64)| EvaluationExample {
            line: i + 1,
            member: None,
            prompt: Vec::new(),
            text: String::new(),
            image: None,
            quality: Some(*quality),
        };
        qualities.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_curriculum_goes_from_low_to_high() {
        let blocks = by_quality(&of(&[5.0, 1.0, 4.0, 2.0, 3.0])).unwrap();
        assert_eq!(blocks, [vec![1, 3, 4], vec![1, 3, 4, 2, 0], vec![2, 0]]);
        assert_eq!(by_quality(&of(&[1.0])).unwrap(), [[0], [0], [0]]);
        let mut unknown = of(&[1.0, 2.0]);
        unknown[1].quality = None;
        let error = by_quality(&unknown).unwrap_err().to_string();
        assert!(error.contains("line 2 has no `quality`") && error.contains("hint:"));
    }
}

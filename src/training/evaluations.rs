//! Evaluations that somebody has written, to be learned as they stand: a file of prompts and completions.
//!
//! In a curriculum they come in three blocks of equal length: the lower half by quality, all of them, and
//! the upper half (`AutoMedEval` §3.2).

use std::ops::Range;
use std::path::PathBuf;

use acem3_experts::train::Sequence;
use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::contrast::Reward;
use super::given_pairs::PairWriter;
use super::practice::Lectern;
use super::stage::{VALIDATION, VALIDATION_AT};
use crate::preferences::{Evaluation, evaluations};

/// What a stage of evaluations learns from in place of drawn examples.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Lines of `prompt`, `completion` (or `chosen`), `images`, `member` and `quality`, as `acem3 data
    /// preferences` writes and TRL reads them; relative to the configuration. The last tenth validates.
    pub file: PathBuf,
    /// Whether they come in the order of their quality.
    #[serde(default)]
    pub curriculum: bool,
}

/// The evaluations of a stage.
pub(super) struct Evaluations<'a> {
    lectern: Lectern<'a>,
    /// Those that a model learns from, and those that validate it.
    learned: Vec<Evaluation>,
    held: Vec<Evaluation>,
    /// The learned ones' places, by block.
    blocks: Vec<Vec<usize>>,
    /// Examples of a whole block.
    length: u64,
}

impl<'a> Evaluations<'a> {
    /// Those of a stage's file for a member, or for all as one; `None` where the stage draws its examples.
    pub(super) fn open(lectern: Lectern<'a>, member: Option<usize>) -> Result<Option<Self>> {
        let settings = lectern.settings;
        let Some(config) = &settings.evaluations else {
            return Ok(None);
        };
        let path = config.file.display();
        let (mut all, _) = evaluations(&config.file)?;
        let learns = |own: Option<usize>| member.is_none() || own.is_none() || own == member;
        all.retain(|evaluation| learns(evaluation.member));
        let held = (all.len() / 10).clamp(1, VALIDATION as usize);
        if all.len() <= held {
            bail!(
                "{path}: {} to learn from, expected at least two\n\
                 hint: the last tenth validates; lines with another `member` are another's",
                crate::summary::plural(all.len() as u64, "evaluation")
            );
        }
        let held = all.split_off(all.len() - held);
        let blocks = if config.curriculum {
            by_quality(&all).with_context(|| path.to_string())?
        } else {
            vec![(0..all.len()).collect()]
        };
        let examples = settings.steps * settings.batch as u64;
        Ok(Some(Self {
            lectern,
            learned: all,
            held,
            length: examples.div_ceil(blocks.len() as u64).max(1),
            blocks,
        }))
    }

    /// The sequences of these numbers.
    pub(super) fn sequences(&self, numbers: Range<u64>) -> Result<Vec<Sequence>> {
        let config = self.lectern.config;
        let writer = PairWriter {
            tokenizer: self.lectern.scribe.tokenizer(),
            processor: &config.processor(),
            image_tokens: self.lectern.scribe.image_tokens(),
            reward: Reward::Absent,
        };
        let leads = [
            &config.dialogue.lead,
            self.lectern.settings.lead().unwrap_or_default(),
        ];
        super::practice::drawn(numbers, |number| {
            let evaluation = self.at(number)?;
            let written = writer.evaluation(evaluation, leads);
            written.with_context(|| format!("line {}", evaluation.line))
        })
    }

    /// The evaluation of a number: block by block, every one once before any comes again.
    fn at(&self, number: u64) -> Result<&Evaluation> {
        if number >= VALIDATION_AT {
            let place = (number - VALIDATION_AT) as usize % self.held.len().max(1);
            return self.held.get(place).context("nothing validates");
        }
        let block = ((number / self.length) as usize).min(self.blocks.len() - 1);
        let places = &self.blocks[block];
        let within = number - block as u64 * self.length;
        let round = within / places.len() as u64;
        let mut order = places.clone();
        let seed = self.lectern.config.seed ^ (block as u64) << 32;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(round);
        order.shuffle(&mut rng);
        let place = order.get((within % places.len() as u64) as usize);
        place
            .and_then(|place| self.learned.get(*place))
            .context("there is no such evaluation")
    }
}

/// The lower half by quality, all, and the upper half; of equals, those that stand first are lower.
fn by_quality(all: &[Evaluation]) -> Result<Vec<Vec<usize>>> {
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

    fn of(qualities: &[f64]) -> Vec<Evaluation> {
        let one = |(i, quality): (usize, &f64)| Evaluation {
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

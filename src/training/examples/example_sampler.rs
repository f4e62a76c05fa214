//! The examples of a stage, each a pure function of the seed and its number.

use acem3_experts::train::{Observation, Sequence};
use acem3_vision::ImageProcessor;
use anyhow::Result;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::Attributes;
use crate::support::digest::Digest;
use crate::training::config::stage_config::{StageConfig, StageKind};
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::dataset_examples::DatasetExamples;
use crate::training::examples::example::{PairExample, RatingExample, ResponseExample};
use crate::training::examples::phantom_examples;
use crate::training::examples::quoting::QuotingExamples;
use crate::training::examples::sequence_builder::{LearningMembers, SequenceBuilder};
use crate::training::preferences::data::negative;
use crate::training::preferences::preference_sequence::{
    PreferenceSequence, PreferenceSequenceBuilder,
};

/// Phantoms of a training have this added to their seed, so that a judge is never tested on them.
const PHANTOM_SEED: u64 = 0x007e_ac0e;

/// Phantoms whose answers give the words of drills where there is no real data.
const WORDED: u64 = 400;

/// The place of the medical expert among the members.
const MEDICAL_KNOWLEDGE: usize = 1;

/// Cases whose factual ratings are compared in one sequence.
const COMPARED: u64 = 8;

/// Draws examples.
pub(crate) struct ExampleSampler {
    seed: u64,
    processor: ImageProcessor,
    grid: usize,
    real: Option<DatasetExamples>,
    drills: QuotingExamples,
}

impl ExampleSampler {
    /// The teacher of a training, with or without real data.
    pub(crate) fn new(config: &TrainConfig, real: Option<DatasetExamples>) -> Self {
        let seed = config.seed.wrapping_add(PHANTOM_SEED);
        let drills = match &real {
            Some(real) => QuotingExamples::new(real.answers_said()),
            None => {
                QuotingExamples::new(phantom_examples::responses(seed, 0..WORDED).map(|r| r.text))
            }
        };
        Self {
            seed: config.seed,
            processor: config.processor(),
            grid: config.model.vision.grid(),
            real,
            drills,
        }
    }

    /// Numbers of classes of every attribute an encoder learns.
    pub(crate) fn attribute_classes(&self) -> Vec<usize> {
        let mut classes = Attributes::CLASSES.to_vec();
        classes.extend(self.real.iter().flat_map(DatasetExamples::classes));
        classes
    }

    /// The hash of the real data, where there are any.
    pub(crate) fn data(&self) -> Option<Digest> {
        self.real.as_ref().map(DatasetExamples::digest)
    }

    /// Texts for the tokenizer.
    pub(crate) fn texts(&self, n: u64) -> impl Iterator<Item = String> + '_ {
        let phantoms = (0..n).flat_map(|i| {
            let pair = crate::data::phantoms::phantom(self.phantom_seed(), i);
            let mut texts = vec![pair.question.text];
            for response in pair.responses {
                texts.push(response.text);
                let ratings = response.ratings.into_iter().map(|(_, rating)| rating);
                for rating in ratings.chain([response.conclusion]) {
                    texts.push(format!(" {}\n", rating.analysis));
                    texts.push(format!("Score: {}", rating.score));
                }
            }
            texts
        });
        phantoms.chain(self.real.iter().flat_map(DatasetExamples::texts))
    }

    /// The image of number `index` with its attributes.
    pub(crate) fn observation(&self, stage: &StageConfig, index: u64) -> Result<Observation> {
        let mut rng = self.rng(stage, index);
        if rng.random_bool(stage.real)
            && let Some(real) = &self.real
            && let Some(found) = real.observation(Attributes::CLASSES.len(), &mut rng)
        {
            return Ok(found);
        }
        phantom_examples::observation(
            self.phantom_seed(),
            number(stage, index),
            &self.processor,
            self.grid,
        )
    }

    /// The sequences of number `index`.
    pub(crate) fn sequences(
        &self,
        scribe: &SequenceBuilder,
        stage: &StageConfig,
        index: u64,
        member: Option<usize>,
    ) -> Result<Vec<Sequence>> {
        let mut rng = self.rng(stage, index);
        let number = number(stage, index);
        let real = self.real.as_ref().filter(|_| rng.random_bool(stage.real));
        if rng.random_bool(stage.comparing) {
            let ratings = self.ratings(real, stage, number, &mut rng);
            return Ok(vec![scribe.comparisons(&ratings)?]);
        }
        if stage.kind == StageKind::Align || rng.random_bool(stage.answering) {
            let (pixels, facts) = match real.and_then(|r| r.answers(&mut rng)) {
                Some(found) => found,
                None => phantom_examples::answers(
                    self.phantom_seed(),
                    number,
                    &self.processor,
                    &mut rng,
                )?,
            };
            return Ok(vec![scribe.answers(Some(pixels), &facts)?]);
        }
        if member.is_none() && rng.random_bool(stage.drilling) {
            let question = self.question(number, &mut rng);
            if let Some(pair) = self.drills.pair(question, &mut rng) {
                let lessons = lessons(Some(MEDICAL_KNOWLEDGE), stage.easy, &mut rng);
                return scribe.evaluations(&pair, &pair, lessons);
            }
        }
        let pair = self.pair(real, stage.doubting, number, &mut rng)?;
        let lessons = lessons(member, stage.easy, &mut rng);
        let read = pair.misread(&mut rng);
        scribe.evaluations(&pair, &read, lessons)
    }

    /// What members are to prefer about the case of number `index`. Nothing is doubted there: what is
    /// preferred is right.
    pub(crate) fn contrasts(
        &self,
        contrasts: &PreferenceSequenceBuilder,
        stage: &StageConfig,
        index: u64,
    ) -> Result<Vec<PreferenceSequence>> {
        let mut rng = self.rng(stage, index);
        let real = self.real.as_ref().filter(|_| rng.random_bool(stage.real));
        let pair = self.pair(real, 0.0, number(stage, index), &mut rng)?;
        let read = pair.misread(&mut rng);
        let ways = stage.preferences.iter().flat_map(|p| &p.negatives);
        let ways: Vec<_> = ways.copied().collect();
        contrasts.of(&pair, &read, &stage.member_places(), |ratings| {
            negative(&ways, ratings, &mut rng).map(|(worse, _)| worse)
        })
    }

    /// A pair of real answers where there are any, of a phantom's otherwise.
    fn pair(
        &self,
        real: Option<&DatasetExamples>,
        doubting: f64,
        number: u64,
        rng: &mut ChaCha8Rng,
    ) -> Result<PairExample> {
        match real.and_then(|r| r.pair(doubting, rng)) {
            Some(found) => Ok(found),
            None => phantom_examples::pair(self.phantom_seed(), number, &self.processor, rng),
        }
    }

    /// Any question.
    fn question(&self, number: u64, rng: &mut ChaCha8Rng) -> String {
        let asked = self.real.as_ref().and_then(|real| real.question(rng));
        asked.unwrap_or_else(|| {
            crate::data::phantoms::phantom(self.phantom_seed(), number)
                .question
                .text
        })
    }

    /// Factual ratings of many responses.
    fn ratings(
        &self,
        real: Option<&DatasetExamples>,
        stage: &StageConfig,
        number: u64,
        rng: &mut ChaCha8Rng,
    ) -> Vec<RatingExample> {
        let responses: Vec<ResponseExample> = if let Some(real) = real {
            let pairs = (0..COMPARED).filter_map(|_| real.pair(stage.doubting, rng));
            pairs.flat_map(|pair| pair.responses).collect()
        } else {
            let first = number.wrapping_mul(COMPARED);
            let indices = first..first.wrapping_add(COMPARED);
            phantom_examples::responses(self.phantom_seed(), indices).collect()
        };
        let findings = responses.iter().filter_map(ResponseExample::finding);
        findings.filter(|r| r.learned).cloned().collect()
    }

    fn phantom_seed(&self) -> u64 {
        self.seed.wrapping_add(PHANTOM_SEED)
    }

    fn rng(&self, stage: &StageConfig, index: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ name_hash(&stage.name));
        rng.set_stream(index);
        rng
    }
}

/// Stages see different phantoms.
fn number(stage: &StageConfig, index: u64) -> u64 {
    (name_hash(&stage.name) << 32).wrapping_add(index)
}

/// All members' lessons are shared out over the examples. A single member learns its own alone.
fn lessons(member: Option<usize>, easy: f64, rng: &mut ChaCha8Rng) -> LearningMembers {
    match member {
        Some(3) => LearningMembers {
            branches: [false; 3],
            conclusion: true,
        },
        Some(i) => LearningMembers {
            branches: [0, 1, 2].map(|b| b == i),
            conclusion: false,
        },
        None => LearningMembers {
            branches: [rng.random_bool(easy), true, rng.random_bool(easy)],
            conclusion: rng.random_bool(easy),
        },
    }
}

fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

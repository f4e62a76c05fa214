//! Generates the examples of a stage as a function of seed and index.

use acem3_experts::train::{AttributeExample, Sequence, TrainingImage};
use anyhow::Result;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::Attributes;
use crate::support::digest::{Digest, fnv1a};
use crate::training::config::stage::stage_config::StageConfig;
use crate::training::config::stage::stage_kind::StageKind;
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::example::{PairExample, RatingExample, ResponseExample};
use crate::training::examples::proportion::is_chosen;
use crate::training::examples::sequence_builder::{
    LearningMembers, SequenceBuilder, medical_knowledge,
};
use crate::training::examples::sources::dataset_examples::DatasetExamples;
use crate::training::examples::sources::dataset_pairs::PairMixture;
use crate::training::examples::sources::foreign_text::{ForeignMixture, add_foreign_text};
use crate::training::examples::sources::phantom_examples;
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::examples::sources::quoting::{QuotedWords, QuotingExamples};

/// Offset of the seed of training phantoms, so that they differ from test phantoms.
const PHANTOM_SEED: u64 = 0x007e_ac0e;

/// Number of phantoms whose responses provide the words of quoting examples if there are no data
/// sets.
const QUOTING_PHANTOMS: u64 = 400;

/// Number of cases whose factual ratings form one sequence of comparisons.
const COMPARISON_CASES: u64 = 8;

/// Number of lists that form one sequence of copies.
const COPIED_LISTS: usize = 8;

/// Proportion of questions without a right answer among the pairs in both presentation orders. The panel
/// remembers the answers to training questions, so its findings would rarely depend on the order.
const UNANSWERABLE_RATE: f64 = 0.8;

/// Proportion of random words as responses among the pairs without a right answer.
const RANDOM_WORDS_RATE: f64 = 0.3;

/// Generates examples from phantoms and data sets.
pub(crate) struct ExampleSampler {
    seed: u64,
    images: ImagePreparation,
    /// Side of the patch grid.
    grid: usize,
    data_sets: Option<DatasetExamples>,
    quoting: QuotingExamples,
}

/// Where a pair comes from.
#[derive(Clone, Copy)]
struct PairOrigin<'a> {
    /// The data sets; `None` for a phantom.
    data_sets: Option<&'a DatasetExamples>,
    /// Index of the phantom.
    phantom: u64,
}

/// Case for preference training.
pub(crate) struct SampledPreference {
    /// Pair with correct evaluations.
    pub(crate) pair: PairExample,
    /// Pair with the evaluations that the conclusion model reads.
    pub(crate) conclusion_pair: PairExample,
    /// Random number generator for the negatives.
    pub(crate) rng: ChaCha8Rng,
}

impl ExampleSampler {
    /// Creates the sampler of a training, with or without data sets.
    pub(crate) fn new(config: &TrainConfig, data_sets: Option<DatasetExamples>) -> Result<Self> {
        let seed = config.seed.wrapping_add(PHANTOM_SEED);
        let quoting = match &data_sets {
            Some(data_sets) => QuotingExamples::new(data_sets.answer_texts()),
            None => QuotingExamples::new(
                phantom_examples::response_examples(seed, 0..QUOTING_PHANTOMS).map(|r| r.text),
            ),
        };
        Ok(Self {
            seed: config.seed,
            images: ImagePreparation::of_training(config)?,
            grid: config.model.vision.grid_side(),
            data_sets,
            quoting,
        })
    }

    /// Returns the method that turns an image file into encoder inputs.
    pub(crate) fn images(&self) -> &ImagePreparation {
        &self.images
    }

    /// Returns the number of classes of every image attribute.
    pub(crate) fn attribute_classes(&self) -> Vec<usize> {
        let mut classes = Attributes::CLASSES.to_vec();
        classes.extend(self.data_sets.iter().flat_map(DatasetExamples::class_counts));
        classes
    }

    /// Returns the hash of the data sets, if any.
    pub(crate) fn data_digest(&self) -> Option<Digest> {
        self.data_sets.as_ref().map(DatasetExamples::digest)
    }

    /// Returns texts to train the tokenizer on: `n` phantoms and all data sets.
    pub(crate) fn texts(&self, n: u64) -> impl Iterator<Item = String> + '_ {
        let phantoms = (0..n).flat_map(|i| {
            let pair = crate::data::phantoms::generate_phantom(self.phantom_seed(), i);
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
        phantoms.chain(self.data_sets.iter().flat_map(DatasetExamples::texts))
    }

    /// Generates the image at an index with its attributes.
    pub(crate) fn attribute_example(
        &self,
        stage: &StageConfig,
        index: u64,
    ) -> Result<AttributeExample> {
        let mut rng = self.rng(stage, index);
        if rng.random_bool(stage.data_set_proportion)
            && let Some(data_sets) = &self.data_sets
            && let Some(example) =
                data_sets.attribute_example(Attributes::CLASSES.len(), &stage.data_shares, &mut rng)
        {
            return Ok(example);
        }
        phantom_examples::attribute_example(
            self.phantom_seed(),
            phantom_index(stage, index),
            &self.images,
            self.grid,
        )
    }

    /// Generates the sequences at an index, for a member or for all members as one model.
    pub(crate) fn sequences(
        &self,
        builder: &SequenceBuilder,
        stage: &StageConfig,
        index: u64,
        member: Option<usize>,
    ) -> Result<Vec<Sequence>> {
        let mut rng = self.rng(stage, index);
        let phantom = phantom_index(stage, index);
        let data_sets = self.sample_source(stage, &mut rng);
        if is_chosen(stage.copying_proportion, &mut rng) {
            let lists: Vec<String> = (0..COPIED_LISTS)
                .map_while(|_| self.quoting.list(QuotedWords::of_stage(stage), &mut rng))
                .collect();
            return Ok(vec![builder.build_copies(&lists)?]);
        }
        if rng.random_bool(stage.comparison_proportion) {
            let ratings = self.factual_ratings(data_sets, stage, phantom, &mut rng);
            return Ok(vec![builder.build_comparisons(&ratings)?]);
        }
        if stage.kind == StageKind::Align || rng.random_bool(stage.answer_proportion) {
            let example =
                match data_sets.and_then(|d| d.answer_example(&stage.data_shares, &mut rng)) {
                    Some(example) => example,
                    None => phantom_examples::answer_example(
                        self.phantom_seed(),
                        phantom,
                        &self.images,
                        &mut rng,
                    )?,
                };
            return Ok(vec![builder.build_answers(&example)?]);
        }
        if member.is_none() && rng.random_bool(stage.quoting_proportion) {
            let question = self.question(stage, phantom, &mut rng);
            let quoted = QuotedWords::of_stage(stage);
            if let Some(mut pair) = self.quoting.pair(question, quoted, &mut rng) {
                pair.image = self.quoting_image(stage, &mut rng);
                let learning = sample_learning_members(
                    Some(medical_knowledge()),
                    stage.easy_proportion,
                    &mut rng,
                );
                return builder.build_evaluations(&pair, &pair, learning);
            }
        }
        let source = PairOrigin { data_sets, phantom };
        if member.is_none()
            && is_chosen(stage.consistency_proportion, &mut rng)
            && let Some(sequence) = self.both_orders(source, stage, builder, &mut rng)?
        {
            return Ok(vec![sequence]);
        }
        let pair = self.pair(source, stage, PairMixture::of_stage(stage), &mut rng)?;
        let learning = sample_learning_members(member, stage.easy_proportion, &mut rng);
        let conclusion_pair = pair.with_expert_errors(&mut rng);
        builder.build_evaluations(&pair, &conclusion_pair, learning)
    }

    /// Generates the pair at an index for preference training. The pair has no wrong findings,
    /// because chosen evaluations must be correct.
    pub(crate) fn preference_example(
        &self,
        stage: &StageConfig,
        index: u64,
    ) -> Result<SampledPreference> {
        let mut rng = self.rng(stage, index);
        let data_sets = self.sample_source(stage, &mut rng);
        let source = PairOrigin { data_sets, phantom: phantom_index(stage, index) };
        let mixture = PairMixture { wrong_findings: 0.0, ..PairMixture::of_stage(stage) };
        let pair = self.pair(source, stage, mixture, &mut rng)?;
        let conclusion_pair = pair.with_expert_errors(&mut rng);
        Ok(SampledPreference { pair, conclusion_pair, rng })
    }

    /// Samples the image of a quoting example, if it has one.
    fn quoting_image(&self, stage: &StageConfig, rng: &mut ChaCha8Rng) -> Option<TrainingImage> {
        let data_sets = self.data_sets.as_ref();
        let data_sets = data_sets.filter(|_| is_chosen(stage.quoting_image_proportion, rng));
        data_sets?.image(&stage.data_shares, rng)
    }

    /// Generates a sequence with both presentation orders of a pair. Most questions have no right answer.
    /// Returns `None` if the pair has no finding.
    fn both_orders(
        &self,
        PairOrigin { data_sets, phantom }: PairOrigin,
        stage: &StageConfig,
        builder: &SequenceBuilder,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Sequence>> {
        let mixture = PairMixture { wrong_findings: 0.0, ..PairMixture::of_stage(stage) };
        let pair = match data_sets.filter(|_| rng.random_bool(UNANSWERABLE_RATE)) {
            Some(data_sets) if rng.random_bool(RANDOM_WORDS_RATE) => {
                let question = self.question(stage, phantom, rng);
                let pair = self.quoting.pair(question, QuotedWords::of_stage(stage), rng);
                let image = data_sets.image(&stage.data_shares, rng);
                pair.map(|pair| PairExample { image, ..pair })
            }
            Some(data_sets) => data_sets.unanswerable_pair(mixture, &stage.data_shares, rng),
            None => Some(self.pair(PairOrigin { data_sets, phantom }, stage, mixture, rng)?),
        };
        let Some(mut pair) = pair else { return Ok(None) };
        if rng.random_bool(0.5) {
            pair.take_finding_from_claim(usize::from(rng.random_bool(0.5)));
        }
        builder.build_both_orders(&pair)
    }

    /// Samples the source of the next example: the data sets, or phantoms (`None`).
    fn sample_source(&self, stage: &StageConfig, rng: &mut ChaCha8Rng) -> Option<&DatasetExamples> {
        let data_sets = self.data_sets.as_ref();
        data_sets.filter(|_| rng.random_bool(stage.data_set_proportion))
    }

    /// Generates a pair from the data sets, or from a phantom if there are no data sets or they
    /// have no pair. The stage says how many pairs contain foreign text.
    fn pair(
        &self,
        PairOrigin { data_sets, phantom }: PairOrigin,
        stage: &StageConfig,
        mixture: PairMixture,
        rng: &mut ChaCha8Rng,
    ) -> Result<PairExample> {
        let of_data_sets = data_sets.and_then(|d| d.pair(mixture, &stage.data_shares, rng));
        let foreign_proportion = match (&of_data_sets, stage.foreign_phantom_proportion) {
            (None, Some(of_phantoms)) => of_phantoms,
            _ => stage.foreign_proportion,
        };
        let mut pair = of_data_sets.map_or_else(
            || phantom_examples::pair_example(self.phantom_seed(), phantom, &self.images, rng),
            Ok,
        )?;
        if is_chosen(foreign_proportion, rng) {
            add_foreign_text(&mut pair, ForeignMixture::of_stage(stage), rng);
        }
        Ok(pair)
    }

    /// Samples a question from the data sets, or from a phantom if there are none.
    fn question(&self, stage: &StageConfig, phantom: u64, rng: &mut ChaCha8Rng) -> String {
        let data_sets = self.data_sets.as_ref();
        let question = data_sets.and_then(|data_sets| data_sets.question(&stage.data_shares, rng));
        question.unwrap_or_else(|| {
            crate::data::phantoms::generate_phantom(self.phantom_seed(), phantom).question.text
        })
    }

    /// Generates the factual ratings of several responses.
    fn factual_ratings(
        &self,
        data_sets: Option<&DatasetExamples>,
        stage: &StageConfig,
        phantom: u64,
        rng: &mut ChaCha8Rng,
    ) -> Vec<RatingExample> {
        let mixture = PairMixture {
            wrong_findings: stage.wrong_finding_proportion,
            ..PairMixture::default()
        };
        let responses: Vec<ResponseExample> = if let Some(data_sets) = data_sets {
            let pair = |_| data_sets.pair(mixture, &stage.data_shares, rng);
            let pairs = (0..COMPARISON_CASES).filter_map(pair);
            pairs.flat_map(|pair| pair.responses).collect()
        } else {
            let first_index = phantom.wrapping_mul(COMPARISON_CASES);
            let indices = first_index..first_index.wrapping_add(COMPARISON_CASES);
            phantom_examples::response_examples(self.phantom_seed(), indices).collect()
        };
        let ratings = responses.iter().filter_map(ResponseExample::factual_rating);
        ratings.filter(|r| r.trains_finding).cloned().collect()
    }

    /// Returns the seed of training phantoms.
    fn phantom_seed(&self) -> u64 {
        self.seed.wrapping_add(PHANTOM_SEED)
    }

    /// Returns the random number generator of an example.
    fn rng(&self, stage: &StageConfig, index: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ fnv1a(&stage.name));
        rng.set_stream(index);
        rng
    }
}

/// Returns the index of an example's phantom. Stages have different phantoms.
fn phantom_index(stage: &StageConfig, index: u64) -> u64 {
    (fnv1a(&stage.name) << 32).wrapping_add(index)
}

/// Samples the members that train on a pair. If the stage trains a single member, returns that
/// `member`.
fn sample_learning_members(
    member: Option<usize>,
    easy_proportion: f64,
    rng: &mut ChaCha8Rng,
) -> LearningMembers {
    match member {
        Some(3) => LearningMembers { branches: [false; 3], conclusion: true },
        Some(i) => LearningMembers { branches: [0, 1, 2].map(|b| b == i), conclusion: false },
        None => LearningMembers {
            branches: [rng.random_bool(easy_proportion), true, rng.random_bool(easy_proportion)],
            conclusion: rng.random_bool(easy_proportion),
        },
    }
}

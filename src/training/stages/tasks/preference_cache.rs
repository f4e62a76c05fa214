//! Preference pairs of a stage with their frozen activations. All epochs and learners read the same
//! cache.

use std::ops::Range;
use std::path::Path;

use acem3_experts::train::{OtherOrder, Parameters, Sequence};
use anyhow::{Context, Result};

use crate::training::config::stage::stage_config::StageConfig;
use crate::training::preferences::own_evaluations::OwnEvaluations;
use crate::training::preferences::preference_sequence::{ChosenTargets, PreferenceSequence};
use crate::training::stages::context::StageContext;
use crate::training::stages::files::stage_files::activation_path;
use crate::training::stages::frozen::frozen_cache::{
    CHUNK_SIZE, FrozenCache, FrozenCacheFile, FrozenCacheWriter,
};
use crate::training::stages::parallel::sample_parallel;
use crate::training::stages::tasks::preference_source::{
    ExampleSequences, PairCounts, PreferenceSource,
};

/// Preference pair: a sequence and two of its branches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedPair {
    /// Index of the sequence in the cache.
    sequence: usize,
    /// Branches of the chosen and the rejected completion.
    branches: [u16; 2],
}

/// Preference pairs of a learner.
pub(crate) struct LearnerPairs {
    /// Training pairs.
    pub(crate) training: Vec<CachedPair>,
    /// Validation split.
    pub(crate) validation: Vec<CachedPair>,
}

/// Preference pairs of a stage.
pub(crate) struct PreferenceCache {
    activations: FrozenCache,
    /// Members that each sequence has a preference pair for.
    members: Vec<Vec<usize>>,
    /// Numbers of targets of each chosen completion.
    targets: Vec<Vec<ChosenTargets>>,
    /// Index of the sequence with the other presentation order, if any.
    partners: Vec<Option<usize>>,
    /// Number of training sequences. The other sequences are the validation split.
    training_count: usize,
}

impl PreferenceCache {
    /// Samples or reads the preference pairs of a stage, and computes the missing frozen activations. `own`:
    /// evaluations of the panel before the stage, which are rejected. Returns `None` if the user interrupts it.
    pub(crate) fn build(
        context: StageContext,
        own: Option<OwnEvaluations>,
        initial: &Parameters,
        out: &Path,
    ) -> Result<Option<Self>> {
        let StageContext { stage, progress, .. } = context;
        let preferences = stage.preferences.as_ref();
        let preferences = preferences
            .with_context(|| format!("stage {}: no [stages.preferences]", stage.name))?;
        let file = FrozenCacheFile {
            path: activation_path(out, &stage.name),
            dtype: preferences.cache_dtype,
        };
        let vb = context.load_parameters(initial)?.builder();
        let mut writer = FrozenCacheWriter::open(context, &vb, &file)?;
        let mut described = DescribedSequences::default();
        let mut training_count = 0;
        let source = PreferenceSource::with_own(context, own)?;
        let ranges = source.index_ranges();
        let training_end = ranges.training.end;
        for chunk in chunks(ranges.training).chain(chunks(ranges.validation)) {
            if progress.is_interrupted() {
                return Ok(None);
            }
            let is_training = chunk.start < training_end;
            if writer.needs_computation() && is_training {
                let state = format!(
                    "computing frozen activations, {} of {training_end} cases",
                    chunk.start
                );
                progress.report(&stage.name, 0, &state);
            }
            let sampled = sample_parallel(chunk, |index| source.sequences(index))?;
            let sequences = sampled.into_iter().flat_map(|example| described.add(context, example));
            writer.add(sequences.collect())?;
            if is_training {
                training_count = described.members.len();
            }
        }
        let DescribedSequences { members, targets, partners } = described;
        let activations = writer.finish()?;
        let cache = Self { activations, members, targets, partners, training_count };
        cache.check(stage)?;
        Ok(Some(cache))
    }

    /// Checks that enough pairs of every member fit into the context.
    fn check(&self, stage: &StageConfig) -> Result<()> {
        for member in stage.member_indices() {
            let pairs = self.pairs(Some(member));
            let counts =
                PairCounts { training: pairs.training.len(), validation: pairs.validation.len() };
            counts.check(stage, member)?;
        }
        Ok(())
    }

    /// Returns the number of decoder layers whose output is cached.
    pub(crate) fn decoder_layers(&self) -> usize {
        self.activations.decoder_layers()
    }

    /// Returns the pairs of a member, or of all members.
    pub(crate) fn pairs(&self, member: Option<usize>) -> LearnerPairs {
        let select = |sequences: Range<usize>| {
            let pairs = sequences.flat_map(|sequence| {
                let members = self.members[sequence].iter().enumerate();
                let selected =
                    members.filter(move |(_, m)| member.is_none_or(|member| member == **m));
                selected.map(move |(i, _)| CachedPair {
                    sequence,
                    branches: PreferenceSequence::branches(i),
                })
            });
            pairs.collect()
        };
        LearnerPairs {
            training: select(0..self.training_count),
            validation: select(self.training_count..self.members.len()),
        }
    }

    /// Returns the chosen completion of a pair in the other presentation order, if there is one.
    pub(crate) fn other_order(&self, pair: CachedPair) -> Result<Option<OtherOrder>> {
        let Some(partner) = self.partners[pair.sequence] else {
            return Ok(None);
        };
        let [chosen, _] = pair.branches;
        let targets = self.targets[pair.sequence].get(usize::from(chosen) / 2);
        let ChosenTargets { lead, first } = targets.copied().unwrap_or_default();
        let sequence = self.activations.select(partner, &[chosen])?;
        Ok(Some(OtherOrder { sequence, lead, first_targets: first }))
    }

    /// Returns the sequence of a pair: branch 1 is the chosen completion, branch 2 the rejected
    /// one.
    pub(crate) fn sequence(&self, pair: CachedPair) -> Result<Sequence> {
        self.activations.select(pair.sequence, &pair.branches)
    }
}

/// What is known of the sequences in a cache, in their order.
#[derive(Default)]
struct DescribedSequences {
    members: Vec<Vec<usize>>,
    targets: Vec<Vec<ChosenTargets>>,
    partners: Vec<Option<usize>>,
}

impl DescribedSequences {
    /// Adds the sequences of an example that fit into the context, and returns them.
    fn add(&mut self, context: StageContext, example: ExampleSequences) -> Vec<Sequence> {
        let ExampleSequences { mut sequences, has_both_orders } = example;
        let count = sequences.len();
        sequences.retain(|pair| context.fits_context(&pair.sequence));
        let (start, half) = (self.members.len(), count / 2);
        let is_complete = has_both_orders && sequences.len() == count;
        let mut added = Vec::new();
        for (i, pair) in sequences.into_iter().enumerate() {
            let partner = start + if i < half { i + half } else { i - half };
            self.partners.push(is_complete.then_some(partner));
            self.members.push(pair.members);
            self.targets.push(pair.targets);
            added.push(pair.sequence);
        }
        added
    }
}

/// Splits indices into ranges of at most [`CHUNK_SIZE`].
fn chunks(indices: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = indices.clone().step_by(CHUNK_SIZE as usize);
    starts.map(move |start| start..(start + CHUNK_SIZE).min(indices.end))
}

//! Direct preference optimization: chosen evaluations become more probable than rejected ones.

use std::ops::Range;
use std::path::Path;

use acem3_experts::Error;
use acem3_experts::train::{
    Batch, DpoLossConfig, PreferenceExample, Sequence, ShardLoss, TrainableModel, map_on_device,
};
use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};

use crate::checkpoints::safetensors;
use crate::training::config::validation_indices::VALIDATION_START;
use crate::training::stages::context::StageContext;
use crate::training::stages::frozen::frozen_cache::CHUNK_SIZE;
use crate::training::stages::tasks::epoch_sampler::EpochSampler;
use crate::training::stages::tasks::preference_cache::{CachedPair, PreferenceCache};
use crate::training::stages::tasks::training_task::TrainingTask;

/// Name of the tensor in the file of reference log-likelihoods.
const LOG_LIKELIHOODS: &str = "log_likelihoods";

/// Inputs of a [`DpoTask`].
pub(crate) struct DpoInputs<'a> {
    /// Model with the initial weights of the stage.
    pub(crate) model: TrainableModel,
    /// Preference pairs of the stage.
    pub(crate) cache: &'a PreferenceCache,
    /// Index of the member to train; `None` trains all members as one model.
    pub(crate) member: Option<usize>,
    /// File of the reference model's log-likelihoods, written if it does not exist.
    pub(crate) references_path: &'a Path,
}

/// DPO of one learner.
pub(crate) struct DpoTask<'a> {
    context: StageContext<'a>,
    model: TrainableModel,
    cache: &'a PreferenceCache,
    loss_config: DpoLossConfig,
    training: Vec<ReferencedPair>,
    validation: Vec<ReferencedPair>,
}

/// A pair with the log-likelihoods of its chosen and rejected completion under the reference model.
#[derive(Clone, Copy)]
struct ReferencedPair {
    pair: CachedPair,
    reference: [f64; 2],
}

impl<'a> DpoTask<'a> {
    /// Reads or computes the log-likelihoods of the reference model, which is the model before
    /// training. Returns `None` if the user interrupts the computation.
    pub(crate) fn new(context: StageContext<'a>, inputs: DpoInputs<'a>) -> Result<Option<Self>> {
        let DpoInputs { model, cache, member, references_path } = inputs;
        let pairs = cache.pairs(member);
        let all_pairs: Vec<CachedPair> =
            pairs.training.iter().chain(&pairs.validation).copied().collect();
        let likelihoods = if references_path.exists() {
            read_references(references_path, all_pairs.len())?
        } else {
            let Some(likelihoods) = reference_likelihoods(context, &model, cache, &all_pairs)?
            else {
                return Ok(None);
            };
            write_references(references_path, &likelihoods)?;
            likelihoods
        };
        let referenced = all_pairs.into_iter().zip(likelihoods);
        let mut training: Vec<ReferencedPair> =
            referenced.map(|(pair, reference)| ReferencedPair { pair, reference }).collect();
        let validation = training.split_off(pairs.training.len());
        let preferences = context.stage.preferences.as_ref();
        let preferences = preferences.context("the stage has no [stages.preferences]")?;
        Ok(Some(Self {
            loss_config: DpoLossConfig {
                beta: preferences.beta,
                nll_weight: preferences.anchor,
                consistency_weight: preferences.consistency,
            },
            training,
            validation,
            context,
            model,
            cache,
        }))
    }

    /// Returns the training pairs at some example indices, reshuffled every epoch.
    fn sample(&self, indices: Range<u64>) -> Vec<ReferencedPair> {
        let sampler = EpochSampler { seed: self.context.config.seed, n: self.training.len() };
        let sampled = sampler.indices(indices).into_iter();
        sampled.map(|i| self.training[i]).collect()
    }
}

impl TrainingTask for DpoTask<'_> {
    type Example = PreferenceExample;

    fn examples(&self, indices: Range<u64>) -> Result<Vec<PreferenceExample>> {
        let pairs = if indices.start >= VALIDATION_START {
            self.validation.clone()
        } else {
            self.sample(indices)
        };
        let is_consistent = self.loss_config.consistency_weight > 0.0;
        let preferences = pairs.into_iter().map(|ReferencedPair { pair, reference }| {
            let other_order = if is_consistent { self.cache.other_order(pair)? } else { None };
            Ok(PreferenceExample {
                sequence: self.cache.sequence(pair)?,
                reference_log_likelihoods: reference,
                other_order,
            })
        });
        let mut preferences: Vec<PreferenceExample> = preferences.collect::<Result<_>>()?;
        preferences.sort_by_key(|p| std::cmp::Reverse(p.sequence.len()));
        Ok(preferences)
    }

    fn fixed_len(&self) -> Option<usize> {
        Some(self.training.len())
    }

    fn micro_batch(&self) -> usize {
        self.context.config.micro_batch
    }

    fn loss(&self, preferences: &[PreferenceExample]) -> Result<ShardLoss, Error> {
        self.model.preference_loss(preferences, self.loss_config)
    }
}

/// Computes the log-likelihoods of both completions of each pair. Returns `None` if the user
/// interrupts it.
fn reference_likelihoods(
    context: StageContext,
    model: &TrainableModel,
    cache: &PreferenceCache,
    pairs: &[CachedPair],
) -> Result<Option<Vec<[f64; 2]>>> {
    let mut likelihoods = Vec::with_capacity(pairs.len());
    let batches: Vec<&[CachedPair]> = pairs.chunks(context.config.micro_batch).collect();
    for batches in batches.chunks(CHUNK_SIZE as usize) {
        if context.progress.is_interrupted() {
            return Ok(None);
        }
        let (done, total) = (likelihoods.len(), pairs.len());
        let state = format!("computing the reference log-likelihoods, {done} of {total} pairs");
        context.progress.report(&context.stage.name, 0, &state);
        let computed = map_on_device(context.device, batches, |pairs| {
            let sequences = pairs.iter().map(|pair| cache.sequence(*pair));
            let sequences: Result<Vec<Sequence>> = sequences.collect();
            let sequences = sequences.map_err(|e| Error::Training(format!("{e:#}")))?;
            model.log_likelihoods(&Batch(&sequences))
        });
        for batch in computed {
            likelihoods.extend(batch?);
        }
    }
    Ok(Some(likelihoods))
}

fn write_references(path: &Path, likelihoods: &[[f64; 2]]) -> Result<()> {
    let values = Tensor::from_vec(likelihoods.concat(), (likelihoods.len(), 2), &Device::Cpu)?;
    safetensors::write([(&LOG_LIKELIHOODS.to_owned(), &values)], path)
}

fn read_references(path: &Path, n: usize) -> Result<Vec<[f64; 2]>> {
    let tensors = candle::safetensors::load(path, &Device::Cpu);
    let tensors = tensors.with_context(|| path.display().to_string())?;
    let values = tensors.get(LOG_LIKELIHOODS).map(Tensor::to_vec2::<f64>).transpose()?;
    match values {
        Some(values) if values.len() == n => Ok(values.into_iter().map(|v| [v[0], v[1]]).collect()),
        values => bail!(
            "{}: found {} pairs, expected {n}\nhint: delete the file and run again",
            path.display(),
            values.as_ref().map_or(0, Vec::len)
        ),
    }
}

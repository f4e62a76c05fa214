//! Direct preference optimization: chosen evaluations become more probable than rejected ones.

use std::ops::Range;
use std::path::Path;

use acem3_experts::Error;
use acem3_experts::train::{Batch, Loss, Preference, PreferenceLoss, Sequence, Student, on_device};
use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};

use crate::training::config::validation_indices::VALIDATION_START;
use crate::training::stages::context::StageContext;
use crate::training::stages::epoch_sampler::EpochSampler;
use crate::training::stages::frozen::frozen_cache::CHUNK;
use crate::training::stages::tasks::preference_cache::{CachedPair, PreferenceCache};
use crate::training::stages::tasks::training_task::TrainingTask;

/// Name of the tensor in the file of reference log-likelihoods.
const REFERENCE: &str = "log_likelihoods";

/// What a [`DpoTask`] is made from.
pub(crate) struct DpoInputs<'a> {
    /// The model as the stage starts.
    pub(crate) student: Student,
    /// Preference pairs of the stage.
    pub(crate) cache: &'a PreferenceCache,
    /// Index of the member to train; all as one model if `None`.
    pub(crate) member: Option<usize>,
    /// File of the reference model's log-likelihoods, written if it does not exist.
    pub(crate) references: &'a Path,
}

/// DPO of one learner.
pub(crate) struct DpoTask<'a> {
    context: StageContext<'a>,
    student: Student,
    cache: &'a PreferenceCache,
    constants: PreferenceLoss,
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
    /// Reads or computes the log-likelihoods of the reference model, which is the student before training. Returns
    /// `None` if the user interrupts the computation.
    pub(crate) fn new(context: StageContext<'a>, inputs: DpoInputs<'a>) -> Result<Option<Self>> {
        let DpoInputs {
            student,
            cache,
            member,
            references,
        } = inputs;
        let pairs = cache.pairs(member);
        let all: Vec<CachedPair> = pairs
            .training
            .iter()
            .chain(&pairs.validation)
            .copied()
            .collect();
        let likelihoods = if references.exists() {
            read_references(references, all.len())?
        } else {
            let Some(likelihoods) = reference_likelihoods(context, &student, cache, &all)? else {
                return Ok(None);
            };
            write_references(references, &likelihoods)?;
            likelihoods
        };
        let referenced = all.into_iter().zip(likelihoods);
        let mut training: Vec<ReferencedPair> = referenced
            .map(|(pair, reference)| ReferencedPair { pair, reference })
            .collect();
        let validation = training.split_off(pairs.training.len());
        let preferences = context.stage.preferences.as_ref();
        let preferences = preferences.context("the stage has no [stages.preferences]")?;
        Ok(Some(Self {
            constants: PreferenceLoss {
                beta: preferences.beta,
                anchor: preferences.anchor,
            },
            training,
            validation,
            context,
            student,
            cache,
        }))
    }

    fn sample(&self, indices: Range<u64>) -> Vec<ReferencedPair> {
        let sampler = EpochSampler {
            seed: self.context.config.seed,
            n: self.training.len(),
        };
        let sampled = sampler.indices(indices).into_iter();
        sampled.map(|i| self.training[i]).collect()
    }
}

impl TrainingTask for DpoTask<'_> {
    type Example = Preference;

    fn examples(&self, indices: Range<u64>) -> Result<Vec<Preference>> {
        let pairs = if indices.start >= VALIDATION_START {
            self.validation.clone()
        } else {
            self.sample(indices)
        };
        let preferences = pairs.into_iter().map(|ReferencedPair { pair, reference }| {
            Ok(Preference {
                sequence: self.cache.sequence(pair)?,
                reference,
            })
        });
        let mut preferences: Vec<Preference> = preferences.collect::<Result<_>>()?;
        preferences.sort_by_key(|p| std::cmp::Reverse(p.sequence.len()));
        Ok(preferences)
    }

    fn fixed_len(&self) -> Option<usize> {
        Some(self.training.len())
    }

    fn micro_batch(&self) -> usize {
        self.context.config.micro_batch
    }

    fn loss(&self, preferences: &[Preference]) -> Result<Loss, Error> {
        self.student.preference_loss(preferences, self.constants)
    }
}

/// Computes the log-likelihoods of both completions of each pair. Returns `None` if the user interrupts it.
fn reference_likelihoods(
    context: StageContext,
    student: &Student,
    cache: &PreferenceCache,
    pairs: &[CachedPair],
) -> Result<Option<Vec<[f64; 2]>>> {
    let mut likelihoods = Vec::with_capacity(pairs.len());
    let batches: Vec<&[CachedPair]> = pairs.chunks(context.config.micro_batch).collect();
    for batches in batches.chunks(CHUNK as usize) {
        if context.progress.interrupted() {
            return Ok(None);
        }
        let (done, all) = (likelihoods.len(), pairs.len());
        let state = format!("computing the reference log-likelihoods, {done} of {all} pairs");
        context.progress.report(&context.stage.name, 0, &state);
        let computed = on_device(context.device, batches, |pairs| {
            let sequences = pairs.iter().map(|pair| cache.sequence(*pair));
            let sequences: Result<Vec<Sequence>> = sequences.collect();
            let sequences = sequences.map_err(|e| Error::Training(format!("{e:#}")))?;
            student.log_likelihoods(&Batch(&sequences))
        });
        for batch in computed {
            likelihoods.extend(batch?);
        }
    }
    Ok(Some(likelihoods))
}

fn write_references(path: &Path, likelihoods: &[[f64; 2]]) -> Result<()> {
    let values = Tensor::from_vec(likelihoods.concat(), (likelihoods.len(), 2), &Device::Cpu)?;
    let part = path.with_extension("part");
    values.save_safetensors(REFERENCE, &part)?;
    std::fs::rename(&part, path).with_context(|| format!("cannot write {}", path.display()))
}

fn read_references(path: &Path, n: usize) -> Result<Vec<[f64; 2]>> {
    let tensors = candle::safetensors::load(path, &Device::Cpu);
    let tensors = tensors.with_context(|| path.display().to_string())?;
    let values = tensors
        .get(REFERENCE)
        .map(Tensor::to_vec2::<f64>)
        .transpose()?;
    match values {
        Some(values) if values.len() == n => Ok(values.into_iter().map(|v| [v[0], v[1]]).collect()),
        values => bail!(
            "{}: found {} pairs, expected {n}\nhint: delete the file and run again",
            path.display(),
            values.as_ref().map_or(0, Vec::len)
        ),
    }
}

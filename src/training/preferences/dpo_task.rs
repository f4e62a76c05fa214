//! Practice of preferring: right evaluations to become likelier than worse ones.

use std::ops::Range;
use std::path::Path;

use acem3_experts::Error;
use acem3_experts::train::{Batch, Loss, Preference, PreferenceLoss, Sequence, Student, on_device};
use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};

use crate::training::preferences::preference_cache::{CachedPair, PreferenceCache};
use crate::training::stages::epoch_sampler::EpochSampler;
use crate::training::stages::frozen_cache::CHUNK;
use crate::training::stages::stage::VALIDATION_AT;
use crate::training::stages::task::{StageContext, TrainingTask};

/// The name of the tensor in a file of references.
const REFERENCE: &str = "log_likelihoods";

/// A student of preferences.
pub(crate) struct DpoTask<'a> {
    lectern: StageContext<'a>,
    student: Student,
    stored: &'a PreferenceCache,
    constants: PreferenceLoss,
    /// What is learned, then what validates, each with the log-likelihoods of both continuations
    /// under the model that the stage began with.
    learned: Vec<(CachedPair, [f64; 2])>,
    held: Vec<(CachedPair, [f64; 2])>,
}

impl<'a> DpoTask<'a> {
    /// The preferences of a member, or of all. `student`: the model as the stage begins; what it
    /// thinks of them is read from `references`, or computed and written there. None when the person asked to stop.
    pub(crate) fn new(
        lectern: StageContext<'a>,
        student: Student,
        stored: &'a PreferenceCache,
        member: Option<usize>,
        references: &Path,
    ) -> Result<Option<Self>> {
        let (learned, held) = stored.places(member);
        let places: Vec<CachedPair> = learned.iter().chain(&held).copied().collect();
        let likely = if references.exists() {
            read(references, places.len())?
        } else {
            let Some(likely) = likelihoods(lectern, &student, stored, &places)? else {
                return Ok(None);
            };
            write(references, &likely)?;
            likely
        };
        let known = |places: Vec<CachedPair>, from: usize| -> Vec<_> {
            places
                .into_iter()
                .zip(likely[from..].iter().copied())
                .collect()
        };
        let first_held = learned.len();
        let preferences = lectern.settings.preferences.as_ref();
        let preferences = preferences.context("a stage without preferences")?;
        Ok(Some(Self {
            constants: PreferenceLoss {
                beta: preferences.beta,
                anchor: preferences.anchor,
            },
            learned: known(learned, 0),
            held: known(held, first_held),
            lectern,
            student,
            stored,
        }))
    }

    /// The places of examples.
    fn drawn(&self, numbers: Range<u64>) -> Vec<(CachedPair, [f64; 2])> {
        let deck = EpochSampler {
            seed: self.lectern.config.seed,
            n: self.learned.len(),
        };
        let places = deck.places(numbers).into_iter();
        places.map(|place| self.learned[place]).collect()
    }
}

impl TrainingTask for DpoTask<'_> {
    type Example = Preference;

    fn examples(&self, numbers: Range<u64>) -> Result<Vec<Preference>> {
        let places = if numbers.start >= VALIDATION_AT {
            self.held.clone()
        } else {
            self.drawn(numbers)
        };
        let preferences = places.into_iter().map(|(place, reference)| {
            Ok(Preference {
                sequence: self.stored.sequence(place)?,
                reference,
            })
        });
        let mut preferences: Vec<Preference> = preferences.collect::<Result<_>>()?;
        preferences.sort_by_key(|p| std::cmp::Reverse(p.sequence.len()));
        Ok(preferences)
    }

    fn fixed(&self) -> Option<usize> {
        Some(self.learned.len())
    }

    fn at_once(&self) -> usize {
        self.lectern.config.micro_batch
    }

    fn loss(&self, preferences: &[Preference]) -> Result<Loss, Error> {
        self.student.preference_loss(preferences, self.constants)
    }
}

/// What a model thinks of both continuations of preferences. None when the person asked to stop.
fn likelihoods(
    lectern: StageContext,
    student: &Student,
    stored: &PreferenceCache,
    places: &[CachedPair],
) -> Result<Option<Vec<[f64; 2]>>> {
    let mut likely = Vec::with_capacity(places.len());
    let batches: Vec<&[CachedPair]> = places.chunks(lectern.config.micro_batch).collect();
    for batches in batches.chunks(CHUNK as usize) {
        if lectern.live.interrupted() {
            return Ok(None);
        }
        let (at, all) = (likely.len(), places.len());
        let state = format!("what the model thinks of them already, {at} of {all} preferences");
        lectern.live.report(&lectern.settings.name, 0, &state);
        let thought = on_device(lectern.device, batches, |places| {
            let sequences = places.iter().map(|place| stored.sequence(*place));
            let sequences: Result<Vec<Sequence>> = sequences.collect();
            let sequences = sequences.map_err(|e| Error::Training(format!("{e:#}")))?;
            student.log_likelihoods(&Batch(&sequences))
        });
        for thought in thought {
            likely.extend(thought?);
        }
    }
    Ok(Some(likely))
}

fn write(path: &Path, likely: &[[f64; 2]]) -> Result<()> {
    let values = Tensor::from_vec(likely.concat(), (likely.len(), 2), &Device::Cpu)?;
    let part = path.with_extension("part");
    values.save_safetensors(REFERENCE, &part)?;
    std::fs::rename(&part, path).with_context(|| format!("cannot write {}", path.display()))
}

fn read(path: &Path, n: usize) -> Result<Vec<[f64; 2]>> {
    let tensors = candle::safetensors::load(path, &Device::Cpu);
    let tensors = tensors.with_context(|| path.display().to_string())?;
    let values = tensors
        .get(REFERENCE)
        .map(Tensor::to_vec2::<f64>)
        .transpose()?;
    match values {
        Some(values) if values.len() == n => Ok(values.into_iter().map(|v| [v[0], v[1]]).collect()),
        _ => bail!(
            "{}: it does not hold {n} pairs\nhint: delete it, and run again from the stage's beginning",
            path.display()
        ),
    }
}

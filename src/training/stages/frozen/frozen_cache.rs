//! Frozen-activation cache: the outputs of a model's frozen part for the sequences of a stage.

use std::path::PathBuf;

use acem3_experts::Error;
use acem3_experts::train::{Batch, Given, Sequence, Student, on_device};
use anyhow::Result;
use candle::Tensor;
use candle_nn::VarBuilder;

use crate::training::config::activation_dtype::ActivationDtype;
use crate::training::config::frozen_part::FrozenPart;
use crate::training::stages::context::StageContext;
use crate::training::stages::frozen::activation_file::{ActivationFile, ActivationWriter};

/// Examples that are built and computed between two syncs of the file.
pub(crate) const CHUNK: u64 = 64;

/// Sequences with their cached activations.
pub(crate) struct FrozenCache {
    frozen_part: FrozenPart,
    sequences: Vec<Sequence>,
    /// First row of each sequence, and the end of the last one.
    starts: Vec<usize>,
    rows: Option<ActivationFile>,
}

/// File of a frozen-activation cache.
pub(crate) struct FrozenCacheFile {
    /// Path of the rows.
    pub(crate) path: PathBuf,
    /// Element type of the rows.
    pub(crate) dtype: ActivationDtype,
}

/// Computes the activations of sequences and writes them to the cache.
pub(crate) struct FrozenCacheWriter<'a> {
    context: StageContext<'a>,
    student: Student,
    cache: FrozenCache,
    writer: Option<ActivationWriter>,
}

impl<'a> FrozenCacheWriter<'a> {
    /// Creates the cache of a stage, or resumes that of an interrupted run. `vb` has the stage's initial weights.
    pub(crate) fn open(
        context: StageContext<'a>,
        vb: &VarBuilder,
        file: &FrozenCacheFile,
    ) -> Result<Self> {
        let model = &context.config.model;
        let frozen_part = context.stage.frozen_part(model.decoder.num_hidden_layers);
        let rows = ActivationFile::open(&file.path)?;
        let width = match frozen_part {
            FrozenPart::Trunk(_) => model.decoder.hidden_size,
            FrozenPart::VisionTower => model.vision.hidden_size,
            FrozenPart::Nothing => 0,
        };
        let writer = match (frozen_part, &rows) {
            (FrozenPart::Nothing, _) | (_, Some(_)) => None,
            _ => Some(ActivationWriter::create_or_resume(
                &file.path, file.dtype, width,
            )?),
        };
        Ok(Self {
            context,
            student: Student::load(vb, model, frozen_part.decoder_layers())?,
            cache: FrozenCache {
                frozen_part,
                sequences: Vec::new(),
                starts: vec![0],
                rows,
            },
            writer,
        })
    }

    /// Returns true unless all activations are already on disk.
    pub(crate) fn needs_computation(&self) -> bool {
        self.writer.is_some()
    }

    /// Adds sequences, and computes the activations that are not on disk yet.
    pub(crate) fn add(&mut self, sequences: Vec<Sequence>) -> Result<()> {
        let first = self.cache.sequences.len();
        for sequence in &sequences {
            let rows = self.row_count(sequence);
            self.cache.starts.push(self.cache.end() + rows);
        }
        if let Some(writer) = &mut self.writer {
            let written = writer.rows();
            let starts = self.cache.starts[first..].iter();
            let missing = sequences.iter().zip(starts);
            let missing = missing.filter(|(_, start)| **start >= written);
            let missing: Vec<&Sequence> = missing.map(|(sequence, _)| sequence).collect();
            let (student, frozen_part) = (&self.student, self.cache.frozen_part);
            let computed = on_device(self.context.device, &missing, |sequence| {
                compute_activations(student, frozen_part, sequence)
            });
            for rows in computed {
                if let Some(rows) = rows? {
                    writer.append(&rows)?;
                }
            }
            writer.sync()?;
        }
        let has_pixels = self.cache.frozen_part == FrozenPart::Nothing;
        let sequences = sequences.into_iter().map(|mut sequence| {
            if !has_pixels {
                sequence.given = Given::Text;
            }
            sequence
        });
        self.cache.sequences.extend(sequences);
        Ok(())
    }

    /// Completes the cache and opens it for reading.
    pub(crate) fn finish(mut self) -> Result<FrozenCache> {
        if let Some(writer) = self.writer {
            self.cache.rows = Some(writer.finish()?);
        }
        Ok(self.cache)
    }

    /// Returns the number of rows of a sequence.
    fn row_count(&self, sequence: &Sequence) -> usize {
        match self.cache.frozen_part {
            FrozenPart::Trunk(_) => sequence.len(),
            FrozenPart::VisionTower if sequence.image_at.is_some() => self.student.image_rows(),
            FrozenPart::VisionTower | FrozenPart::Nothing => 0,
        }
    }
}

/// Computes the output of the frozen part for a sequence.
///
/// # Shapes
/// `(rows, width)`.
fn compute_activations(
    student: &Student,
    frozen_part: FrozenPart,
    sequence: &Sequence,
) -> Result<Option<Tensor>, Error> {
    match (frozen_part, &sequence.given) {
        (FrozenPart::Trunk(_), _) => {
            let batch = [sequence.clone()];
            Ok(student.trunk_top(&Batch(&batch))?.pop())
        }
        (FrozenPart::VisionTower, Given::Pixels(pixels)) => {
            let features = student.features(std::slice::from_ref(pixels))?;
            Ok(Some(features.detach().squeeze(0)?))
        }
        _ => Ok(None),
    }
}

impl FrozenCache {
    /// Returns the number of decoder layers in the frozen part.
    pub(crate) fn decoder_layers(&self) -> usize {
        self.frozen_part.decoder_layers()
    }

    /// Returns the prefix and some branches of a sequence with their activations.
    pub(crate) fn select(&self, index: usize, branches: &[u16]) -> Result<Sequence> {
        let (mut part, positions) = self.sequences[index].part(branches)?;
        let rows = self.starts[index]..self.starts[index + 1];
        match (self.frozen_part, &self.rows) {
            (FrozenPart::Trunk(_), Some(file)) => {
                let positions = positions.into_iter();
                let selected = positions.map(|position| rows.start + position as usize);
                part.given = Given::Hidden(file.read_rows(selected)?);
            }
            (FrozenPart::VisionTower, Some(file)) if part.image_at.is_some() => {
                part.given = Given::Features(file.read_rows(rows)?);
            }
            _ => {}
        }
        Ok(part)
    }

    fn end(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }
}

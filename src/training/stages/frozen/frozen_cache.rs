//! Frozen-activation cache: outputs of a model's frozen part for the sequences of a stage.

use std::path::PathBuf;

use acem3_experts::Error;
use acem3_experts::train::{Batch, Sequence, SequenceInput, TrainableModel, map_on_device};
use anyhow::Result;
use candle::Tensor;
use candle_nn::VarBuilder;

use crate::training::config::activation_dtype::ActivationDtype;
use crate::training::config::stage::frozen_part::FrozenPart;
use crate::training::stages::context::StageContext;
use crate::training::stages::frozen::activation_file::{ActivationFile, ActivationWriter};

/// Number of items that are processed between two progress reports. The cache file is synced after
/// each chunk.
pub(crate) const CHUNK_SIZE: u64 = 64;

/// Sequences with their cached activations.
pub(crate) struct FrozenCache {
    frozen_part: FrozenPart,
    sequences: Vec<Sequence>,
    /// Index of the first row of each sequence, and the total number of rows.
    row_starts: Vec<usize>,
    /// Cached rows; `None` if nothing is cached or the file is not complete.
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
    model: TrainableModel,
    cache: FrozenCache,
    writer: Option<ActivationWriter>,
}

impl<'a> FrozenCacheWriter<'a> {
    /// Creates the cache of a stage, or resumes the cache of an interrupted run. `vb` contains the
    /// stage's initial weights.
    pub(crate) fn open(
        context: StageContext<'a>,
        vb: &VarBuilder,
        file: &FrozenCacheFile,
    ) -> Result<Self> {
        let model_config = &context.config.model;
        let frozen_part = context.stage.frozen_part(model_config.decoder.num_hidden_layers);
        let rows = ActivationFile::open(&file.path)?;
        let width = match frozen_part {
            FrozenPart::Trunk(_) => model_config.decoder.hidden_size,
            FrozenPart::VisionTower => model_config.vision.hidden_size,
            FrozenPart::Nothing => 0,
        };
        let writer = match (frozen_part, &rows) {
            (FrozenPart::Nothing, _) | (_, Some(_)) => None,
            _ => Some(ActivationWriter::create_or_resume(&file.path, file.dtype, width)?),
        };
        Ok(Self {
            context,
            model: TrainableModel::load(vb, model_config, frozen_part.decoder_layers())?,
            cache: FrozenCache { frozen_part, sequences: Vec::new(), row_starts: vec![0], rows },
            writer,
        })
    }

    /// Returns true unless all activations are already on disk.
    pub(crate) fn needs_computation(&self) -> bool {
        self.writer.is_some()
    }

    /// Adds sequences and computes the activations that are not on disk yet.
    pub(crate) fn add(&mut self, sequences: Vec<Sequence>) -> Result<()> {
        let first_new = self.cache.sequences.len();
        for sequence in &sequences {
            let rows = self.row_count(sequence);
            self.cache.row_starts.push(self.cache.row_end() + rows);
        }
        if let Some(writer) = &mut self.writer {
            let rows_on_disk = writer.row_count();
            let starts = self.cache.row_starts[first_new..].iter();
            let missing = sequences.iter().zip(starts);
            let missing = missing.filter(|(_, start)| **start >= rows_on_disk);
            let missing: Vec<&Sequence> = missing.map(|(sequence, _)| sequence).collect();
            let (model, frozen_part) = (&self.model, self.cache.frozen_part);
            let computed = map_on_device(self.context.device, &missing, |sequence| {
                compute_activations(model, frozen_part, sequence)
            });
            for rows in computed {
                if let Some(rows) = rows? {
                    writer.append(&rows)?;
                }
            }
            writer.sync()?;
        }
        let keeps_pixels = self.cache.frozen_part == FrozenPart::Nothing;
        let sequences = sequences.into_iter().map(|mut sequence| {
            if !keeps_pixels {
                sequence.input = SequenceInput::Text;
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
            FrozenPart::VisionTower => {
                let inputs = sequence.image.map_or(0, |image| image.grid.inputs);
                inputs * self.model.feature_count()
            }
            FrozenPart::Nothing => 0,
        }
    }
}

/// Computes the output of the frozen part for a sequence.
///
/// # Shapes
/// `(rows, width)`.
fn compute_activations(
    model: &TrainableModel,
    frozen_part: FrozenPart,
    sequence: &Sequence,
) -> Result<Option<Tensor>, Error> {
    match (frozen_part, &sequence.input) {
        (FrozenPart::Trunk(_), _) => {
            let batch = [sequence.clone()];
            Ok(model.trunk_output(&Batch(&batch))?.pop())
        }
        (FrozenPart::VisionTower, SequenceInput::Pixels(pixels)) => {
            let features = model.encode_images(std::slice::from_ref(pixels))?;
            Ok(Some(features.detach().flatten_to(1)?))
        }
        _ => Ok(None),
    }
}

impl FrozenCache {
    /// Returns the number of decoder layers in the frozen part.
    pub(crate) fn decoder_layers(&self) -> usize {
        self.frozen_part.decoder_layers()
    }

    /// Returns the prefix and some branches of a sequence with their cached activations.
    pub(crate) fn select(&self, index: usize, branches: &[u16]) -> Result<Sequence> {
        let (mut selected, positions) = self.sequences[index].select_branches(branches)?;
        let rows = self.row_starts[index]..self.row_starts[index + 1];
        match (self.frozen_part, &self.rows) {
            (FrozenPart::Trunk(_), Some(file)) => {
                let positions = positions.into_iter();
                let indices = positions.map(|position| rows.start + position as usize);
                selected.input = SequenceInput::Hidden(file.read_rows(indices)?);
            }
            (FrozenPart::VisionTower, Some(file)) if selected.image.is_some() => {
                selected.input = SequenceInput::Features(file.read_rows(rows)?);
            }
            _ => {}
        }
        Ok(selected)
    }

    /// Returns the total number of rows.
    fn row_end(&self) -> usize {
        self.row_starts.last().copied().unwrap_or_default()
    }
}

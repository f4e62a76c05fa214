//! What the frozen part of a model makes of sequences, computed once and kept on disk.

use std::path::{Path, PathBuf};

use acem3_experts::Error;
use acem3_experts::train::{Batch, Given, Sequence, Student, on_device};
use anyhow::Result;
use candle::Tensor;
use candle_nn::VarBuilder;

use crate::training::config::stage_config::FrozenPart;
use crate::training::stages::activation_file::{ActivationDtype, ActivationFile, ActivationWriter};
use crate::training::stages::task::StageContext;

/// Cases that are written and computed at a time.
pub(crate) const CHUNK: u64 = 64;

/// Sequences, and where what was computed of each begins.
pub(crate) struct FrozenCache {
    cut: FrozenPart,
    sequences: Vec<Sequence>,
    /// Where the rows of each begin, and where those of the last end.
    starts: Vec<usize>,
    rows: Option<ActivationFile>,
}

/// Computes and keeps.
pub(crate) struct FrozenCacheWriter<'a> {
    lectern: StageContext<'a>,
    student: Student,
    kept: FrozenCache,
    writer: Option<ActivationWriter>,
}

impl<'a> FrozenCacheWriter<'a> {
    /// Begins to keep what a stage leaves as it is, `vb` having the weights with which it begins; or goes on where an
    /// interrupted run stood.
    pub(crate) fn begin(
        lectern: StageContext<'a>,
        vb: &VarBuilder,
        (path, dtype): (PathBuf, ActivationDtype),
    ) -> Result<Self> {
        let model = &lectern.config.model;
        let cut = lectern.settings.cut(model.decoder.num_hidden_layers);
        let rows = ActivationFile::open(&path)?;
        let width = match cut {
            FrozenPart::Trunk(_) => model.decoder.hidden_size,
            FrozenPart::Features => model.vision.hidden_size,
            FrozenPart::Pixels => 0,
        };
        let writer = match (cut, &rows) {
            (FrozenPart::Pixels, _) | (_, Some(_)) => None,
            _ => Some(ActivationWriter::begin(&path, dtype, width)?),
        };
        Ok(Self {
            lectern,
            student: Student::load(vb, model, cut.depth())?,
            kept: FrozenCache {
                cut,
                sequences: Vec::new(),
                starts: vec![0],
                rows,
            },
            writer,
        })
    }

    /// Whether anything is left to be computed.
    pub(crate) fn computes(&self) -> bool {
        self.writer.is_some()
    }

    /// Takes sequences in, and writes their rows where they are wanted and not there yet.
    pub(crate) fn add(&mut self, sequences: Vec<Sequence>) -> Result<()> {
        let first = self.kept.sequences.len();
        for sequence in &sequences {
            let rows = self.rows_of(sequence);
            self.kept.starts.push(self.kept.end() + rows);
        }
        if let Some(writer) = &mut self.writer {
            let there = writer.rows();
            let starts = &self.kept.starts[first..];
            let missing = sequences.iter().zip(starts).filter(|(_, at)| **at >= there);
            let missing: Vec<&Sequence> = missing.map(|(sequence, _)| sequence).collect();
            let (student, cut) = (&self.student, self.kept.cut);
            let computed = on_device(self.lectern.device, &missing, |s| computed(student, cut, s));
            for rows in computed {
                if let Some(rows) = rows? {
                    writer.push(&rows)?;
                }
            }
            writer.keep()?;
        }
        let pixels = self.kept.cut == FrozenPart::Pixels;
        self.kept
            .sequences
            .extend(sequences.into_iter().map(|mut s| {
                if !pixels {
                    s.given = Given::Text;
                }
                s
            }));
        Ok(())
    }

    /// All that was taken in, to be read.
    pub(crate) fn finish(mut self) -> Result<FrozenCache> {
        if let Some(writer) = self.writer {
            self.kept.rows = Some(writer.finish()?);
        }
        Ok(self.kept)
    }

    /// How many rows a sequence has.
    fn rows_of(&self, sequence: &Sequence) -> usize {
        match self.kept.cut {
            FrozenPart::Trunk(_) => sequence.len(),
            FrozenPart::Features if sequence.image_at.is_some() => self.student.image_rows(),
            FrozenPart::Features | FrozenPart::Pixels => 0,
        }
    }
}

/// What the frozen part makes of a sequence.
fn computed(
    student: &Student,
    cut: FrozenPart,
    sequence: &Sequence,
) -> Result<Option<Tensor>, Error> {
    match (cut, &sequence.given) {
        (FrozenPart::Trunk(_), _) => {
            let batch = [sequence.clone()];
            Ok(student.trunk_top(&Batch(&batch))?.pop())
        }
        (FrozenPart::Features, Given::Pixels(pixels)) => {
            let features = student.features(std::slice::from_ref(pixels))?;
            Ok(Some(features.detach().squeeze(0)?))
        }
        _ => Ok(None),
    }
}

impl FrozenCache {
    /// Layers of the decoder that the frozen part has.
    pub(crate) fn depth(&self) -> usize {
        self.cut.depth()
    }

    /// The prefix and some branches of a sequence, with what was computed of them.
    pub(crate) fn part(&self, place: usize, branches: &[u16]) -> Result<Sequence> {
        let (mut part, kept) = self.sequences[place].part(branches)?;
        let rows = self.starts[place]..self.starts[place + 1];
        match (self.cut, &self.rows) {
            (FrozenPart::Trunk(_), Some(all)) => {
                let kept = kept.into_iter().map(|place| rows.start + place as usize);
                part.given = Given::Hidden(all.at(kept)?);
            }
            (FrozenPart::Features, Some(all)) if part.image_at.is_some() => {
                part.given = Given::Features(all.at(rows)?);
            }
            _ => {}
        }
        Ok(part)
    }

    fn end(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }
}

/// The file of what is kept for a stage or one of its members.
pub(crate) fn rows_file(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.rows"))
}

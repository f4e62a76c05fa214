//! The model in training: tower, projector, trunk and one head, from pixels to the loss.

use std::sync::Arc;

use acem3_projector::Projector;
use acem3_vision::VisionTower;
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::given::Given;
use super::sequence::{Sequence, Target};
use super::trainer::Loss;
use crate::decoder::{Head, Sight, Trunk};
use crate::ops::{Visibility, cross_entropy};
use crate::{Error, ModelConfig};

/// A batch of sequences, computed together.
pub struct Batch<'a>(pub &'a [Sequence]);

/// The targets of a batch before they are scored.
pub(super) struct Predicted {
    /// `(targets, v)`.
    pub(super) logits: Tensor,
    /// Each target with the number of its sequence.
    pub(super) rows: Vec<(usize, Target)>,
    /// Tokens computed.
    pub(super) tokens: u64,
}

impl Predicted {
    /// The tokens of the targets.
    pub(super) fn wanted(&self) -> Vec<u32> {
        self.rows.iter().map(|(_, target)| target.token).collect()
    }
}

/// One member with its own weights.
pub struct Student {
    tower: VisionTower,
    projector: Projector,
    trunk: Trunk,
    head: Head,
    side: usize,
    device: Device,
}

impl Student {
    /// The model under `vb`, its decoder cut after `depth` layers.
    pub fn load(vb: &VarBuilder, config: &ModelConfig, depth: usize) -> Result<Self, Error> {
        config.decoder.check().map_err(Error::Training)?;
        let model = vb.pp("model");
        Ok(Self {
            tower: VisionTower::load(
                &model.pp("vision_tower.vision_model"),
                &config.vision,
                config.selection,
            )?,
            projector: Projector::load(&model.pp("mm_projector"), &config.projector)?,
            trunk: Trunk::load(vb, &config.decoder, depth)?,
            head: Head::load(vb, &config.decoder, depth)?,
            side: config.vision.image_size,
            device: vb.device().clone(),
        })
    }

    /// Rows of an image's features.
    pub fn image_rows(&self) -> usize {
        self.tower.tokens()
    }

    /// Features of images.
    ///
    /// # Shapes
    /// `n` images of `3·s·s` values to `(n, p, c_v)`.
    pub fn features(&self, images: &[Arc<[f32]>]) -> Result<Tensor, Error> {
        let values: Vec<f32> = images.iter().flat_map(|i| i.iter().copied()).collect();
        let shape = (images.len(), 3, self.side, self.side);
        Ok(self
            .tower
            .forward(&Tensor::from_vec(values, shape, &self.device)?)?)
    }

    /// Loss of the targets of sequences, and whether the first choice was right where `counted`.
    pub fn loss(&self, batch: &Batch, counted: impl Fn(&Target) -> bool) -> Result<Loss, Error> {
        let predicted = self.predict(batch)?;
        let (logits, rows) = (&predicted.logits, &predicted.rows);
        let weights: Vec<f32> = rows.iter().map(|r| r.1.weight).collect();
        let first = logits.detach().argmax(1)?.to_vec1::<u32>()?;
        let counted = rows.iter().zip(&first).filter(|((_, g), _)| counted(g));
        let hits = counted.fold((0.0, 0.0), |(hit, all), ((_, g), first)| {
            (hit + f64::from(u8::from(g.token == *first)), all + 1.0)
        });
        let weight = weights.iter().map(|w| f64::from(*w)).sum();
        let sum = cross_entropy(logits, &predicted.wanted(), &weights)?;
        Loss::new(sum, weight, hits, predicted.tokens)
    }

    /// What the targets of sequences are predicted from.
    pub(super) fn predict(&self, batch: &Batch) -> Result<Predicted, Error> {
        let t = batch.longest();
        let sight = sight(batch.0, t);
        let top = match hidden(batch.0, t)? {
            Some(top) => top,
            None => self.trunk.forward(&self.embed(batch.0, t)?, &sight)?,
        };
        let hidden = self.head.forward(&top, &sight)?;
        let tokens = batch.0.iter().map(|s| s.len() as u64).sum();
        let sequences = batch.0.iter().enumerate();
        let rows: Vec<(usize, Target)> = sequences
            .flat_map(|(row, s)| s.targets.iter().map(move |g| (row, *g)))
            .collect();
        let places = rows.iter().map(|(row, g)| (row * t + g.from) as u32);
        let places = Tensor::from_vec(places.collect::<Vec<_>>(), rows.len(), &self.device)?;
        Ok(Predicted {
            logits: self.head.logits(&hidden.index_select(&places, 0)?)?,
            rows,
            tokens,
        })
    }

    /// The hidden states of sequences at the trunk's top, as a store keeps them.
    ///
    /// # Shapes
    /// One `(t, c)` for each sequence of `t` tokens.
    pub fn trunk_top(&self, batch: &Batch) -> Result<Vec<Tensor>, Error> {
        let t = batch.longest();
        let top = self
            .trunk
            .forward(&self.embed(batch.0, t)?, &sight(batch.0, t))?;
        let rows = batch.0.iter().enumerate();
        let rows = rows.map(|(row, s)| top.detach().narrow(0, row * t, s.len()));
        Ok(rows.collect::<candle::Result<_>>()?)
    }

    /// Features of the images of sequences, those that have them already among them.
    ///
    /// # Shapes
    /// `n` sequences with images to `(n, p, c_v)`. Where none has one, those of a blank image, which
    /// stand nowhere: layers that see get a gradient in every step, be it zero.
    fn seen(&self, sequences: &[Sequence]) -> Result<Tensor, Error> {
        let (mut pixels, mut features) = (Vec::new(), Vec::new());
        for sequence in sequences.iter().filter(|s| s.image_at.is_some()) {
            match &sequence.given {
                Given::Pixels(image) => pixels.push(image.clone()),
                Given::Features(image) => features.push(image.clone()),
                Given::Text | Given::Hidden(_) => {
                    return Err(problem("a prompt has an image, its sequence has none"));
                }
            }
        }
        match (pixels.is_empty(), features.is_empty()) {
            (_, true) => {
                if pixels.is_empty() {
                    pixels.push(vec![0.0; 3 * self.side * self.side].into());
                }
                self.features(&pixels)
            }
            (true, false) => Ok(Tensor::stack(&features, 0)?),
            (false, false) => Err(problem(
                "some images of a batch are features, others pixels",
            )),
        }
    }

    /// Embedded sequences with their image tokens in place, padded to `t`.
    fn embed(&self, sequences: &[Sequence], t: usize) -> Result<Tensor, Error> {
        let padded = sequences.iter().flat_map(|s| {
            s.tokens
                .iter()
                .copied()
                .chain(std::iter::repeat_n(0, t - s.len()))
        });
        let text = self.trunk.embed(&padded.collect::<Vec<_>>())?;
        let image = self.projector.forward(&self.seen(sequences)?)?;
        let (n, p, c) = image.dims3()?;
        let table = Tensor::cat(&[&text, &image.reshape((n * p, c))?], 0)?;
        let mut source: Vec<u32> = (0..(sequences.len() * t) as u32).collect();
        let mut next = (sequences.len() * t) as u32;
        for (row, sequence) in sequences.iter().enumerate() {
            if let Some(at) = sequence.image_at {
                if at + p > sequence.len() {
                    let found = format!("{p} image tokens do not fit at place {at} of a prompt");
                    return Err(problem(&found));
                }
                for place in &mut source[row * t + at..row * t + at + p] {
                    *place = next;
                    next += 1;
                }
            }
        }
        let source = Tensor::from_vec(source, sequences.len() * t, &self.device)?;
        Ok(table.index_select(&source, 0)?)
    }
}

impl Batch<'_> {
    /// Tokens of the longest sequence.
    fn longest(&self) -> usize {
        self.0.iter().map(Sequence::len).max().unwrap_or(0)
    }
}

fn problem(text: &str) -> Error {
    Error::Training(text.to_owned())
}

/// Hidden states that are known already, padded to `t`: of all sequences, or of none.
fn hidden(sequences: &[Sequence], t: usize) -> Result<Option<Tensor>, Error> {
    let known = sequences.iter().filter_map(|s| match &s.given {
        Given::Hidden(hidden) => Some(hidden.pad_with_zeros(0, 0, t - s.len())),
        _ => None,
    });
    let known: Vec<Tensor> = known.collect::<candle::Result<_>>()?;
    match known.len() {
        0 => Ok(None),
        n if n == sequences.len() => Ok(Some(Tensor::cat(&known, 0)?)),
        _ => Err(problem(
            "some sequences of a batch are hidden states, others tokens",
        )),
    }
}

fn sight(sequences: &[Sequence], t: usize) -> Sight {
    // Padding is a branch of its own that nothing looks at.
    let branches = sequences.iter().flat_map(|s| {
        s.branches
            .iter()
            .copied()
            .chain(std::iter::repeat_n(u16::MAX, t - s.len()))
    });
    let positions = sequences.iter().flat_map(|s| {
        s.positions
            .iter()
            .copied()
            .chain(std::iter::repeat_n(0, t - s.len()))
    });
    Sight {
        batch: sequences.len(),
        positions: positions.collect(),
        visibility: Visibility::Branches {
            branches: branches.collect(),
            tokens: t,
        },
    }
}

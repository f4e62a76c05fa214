//! The model in training: tower, projector, trunk and one head, from pixels to the loss.

use std::sync::Arc;

use acem3_kernels::cross_entropy;
use acem3_projector::Projector;
use acem3_vision::VisionTower;
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::given::Given;
use super::loss::{Hits, Loss};
use super::packing::Packing;
use super::sequence::{Sequence, Target};
use super::tape::Tape;
use crate::decoder::{Head, Trunk};
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
    /// What the gradients of the layers are computed from, where they are computed once more.
    pub(super) tape: Option<Tape>,
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
    recomputing: bool,
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
            recomputing: false,
        })
    }

    /// The same model, whose layers are computed once more for their gradients where so: a third more work, and of
    /// all layers' values only those of one in memory.
    #[must_use]
    pub fn recomputing(self, recomputing: bool) -> Self {
        Self {
            recomputing,
            ..self
        }
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
        let mut hits = Hits::default();
        for ((_, target), first) in counted {
            hits += Hits {
                correct: f64::from(u8::from(target.token == *first)),
                total: 1.0,
            };
        }
        let weight = weights.iter().map(|w| f64::from(*w)).sum();
        let sum = cross_entropy(logits, &predicted.wanted(), &weights)?;
        let loss = Loss::new(sum, weight, hits, predicted.tokens)?;
        Ok(Loss {
            tape: predicted.tape,
            ..loss
        })
    }

    /// What the targets of sequences are predicted from.
    pub(super) fn predict(&self, batch: &Batch) -> Result<Predicted, Error> {
        let packing = Packing::of(batch.0);
        let sight = packing.sight(batch.0);
        let (bottom, trunk) = match packing.hidden(batch.0, &self.device)? {
            Some(top) => (top, [].as_slice()),
            None => (self.embed(batch.0, &packing)?, self.trunk.layers()),
        };
        let mut layers = trunk.iter().chain(self.head.layers());
        let (hidden, tape) = if self.recomputing {
            let tape = Tape::forward(bottom, layers, &sight)?;
            (tape.top().clone(), Some(tape))
        } else {
            let hidden = layers.try_fold(bottom, |x, layer| layer.whole(&x, &sight))?;
            (hidden, None)
        };
        let tokens = batch.0.iter().map(|s| s.len() as u64).sum();
        let sequences = batch.0.iter().enumerate();
        let rows: Vec<(usize, Target)> = sequences
            .flat_map(|(i, s)| s.targets.iter().map(move |g| (i, *g)))
            .collect();
        let places = rows
            .iter()
            .map(|(i, g)| (packing.start(*i) + g.from) as u32);
        let places = Tensor::from_vec(places.collect::<Vec<_>>(), rows.len(), &self.device)?;
        Ok(Predicted {
            logits: self.head.logits(&hidden.index_select(&places, 0)?)?,
            rows,
            tokens,
            tape,
        })
    }

    /// The hidden states of sequences at the trunk's top, as a store keeps them.
    ///
    /// # Shapes
    /// One `(t, c)` for each sequence of `t` tokens.
    pub fn trunk_top(&self, batch: &Batch) -> Result<Vec<Tensor>, Error> {
        let packing = Packing::of(batch.0);
        let embedded = self.embed(batch.0, &packing)?;
        let top = self.trunk.forward(&embedded, &packing.sight(batch.0))?;
        let rows = batch.0.iter().enumerate();
        let rows = rows.map(|(i, s)| top.detach().narrow(0, packing.start(i), s.len()));
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
            (true, false) => Ok(Tensor::stack(&features, 0)?.to_device(&self.device)?),
            (false, false) => Err(problem(
                "some images of a batch are features, others pixels",
            )),
        }
    }

    /// Embedded sequences with their image tokens in place.
    fn embed(&self, sequences: &[Sequence], packing: &Packing) -> Result<Tensor, Error> {
        let tokens = packing.spread(0, sequences.iter().map(|s| s.tokens.clone()));
        let text = self.trunk.embed(&tokens)?;
        let image = self.projector.forward(&self.seen(sequences)?)?;
        let (n, p, c) = image.dims3()?;
        let table = Tensor::cat(&[&text, &image.reshape((n * p, c))?], 0)?;
        let mut source: Vec<u32> = (0..packing.places() as u32).collect();
        let mut next = packing.places() as u32;
        for (i, sequence) in sequences.iter().enumerate() {
            if let Some(at) = sequence.image_at {
                if at + p > sequence.len() {
                    let found = format!("{p} image tokens do not fit at place {at} of a prompt");
                    return Err(problem(&found));
                }
                let first = packing.start(i) + at;
                for place in &mut source[first..first + p] {
                    *place = next;
                    next += 1;
                }
            }
        }
        let source = Tensor::from_vec(source, packing.places(), &self.device)?;
        Ok(table.index_select(&source, 0)?)
    }
}

fn problem(text: &str) -> Error {
    Error::Training(text.to_owned())
}

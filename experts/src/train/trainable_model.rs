//! Model in training: vision tower, projector, trunk and one head, from pixels to the loss.

use std::sync::Arc;

use acem3_kernels::cross_entropy;
use acem3_projector::Projector;
use acem3_vision::VisionTower;
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::loss::{Hits, ShardLoss};
use super::packing::Packing;
use super::recompute::RecomputeTape;
use super::sequence::{Sequence, TargetToken};
use super::sequence_input::SequenceInput;
use crate::decoder::{Head, Trunk};
use crate::{Error, ModelConfig};

/// A batch of sequences.
pub struct Batch<'a>(pub &'a [Sequence]);

/// Targets of a batch with their logits.
pub(super) struct TargetLogits {
    /// Logits, `(targets, v)`.
    pub(super) logits: Tensor,
    /// Each target with the index of its sequence.
    pub(super) targets: Vec<(usize, TargetToken)>,
    /// Number of processed tokens.
    pub(super) tokens: u64,
    /// Recomputed layers. `None` without activation recomputation.
    pub(super) tape: Option<RecomputeTape>,
}

impl TargetLogits {
    /// Returns the token ids of the targets.
    pub(super) fn target_tokens(&self) -> Vec<u32> {
        self.targets.iter().map(|(_, target)| target.token).collect()
    }
}

/// Layers from pixels to image tokens.
struct ImageLayers {
    tower: VisionTower,
    projector: Projector,
}

impl ImageLayers {
    fn load(vb: &VarBuilder, config: &ModelConfig) -> Result<Self, Error> {
        let tower = vb.pp("vision_tower.vision_model");
        Ok(Self {
            tower: VisionTower::load(&tower, &config.vision, config.selection)?,
            projector: Projector::load(&vb.pp("mm_projector"), &config.projector)?,
        })
    }
}

/// A member of a panel with trainable weights.
pub struct TrainableModel {
    /// `None` in a text model.
    images: Option<ImageLayers>,
    trunk: Trunk,
    head: Head,
    image_size: usize,
    device: Device,
    recompute_activations: bool,
}

impl TrainableModel {
    /// Loads the model from `vb`. The trunk has `depth` decoder layers, the head has the others.
    pub fn load(vb: &VarBuilder, config: &ModelConfig, depth: usize) -> Result<Self, Error> {
        config.decoder.validate().map_err(Error::Training)?;
        let model = vb.pp("model");
        Ok(Self {
            images: (!config.is_text_only())
                .then(|| ImageLayers::load(&model, config))
                .transpose()?,
            trunk: Trunk::load(vb, &config.decoder, depth)?,
            head: Head::load(vb, &config.decoder, depth)?,
            image_size: config.vision.image_size,
            device: vb.device().clone(),
            recompute_activations: false,
        })
    }

    /// Enables or disables activation recomputation. It takes a third more computation and keeps
    /// the activations of only one layer in memory.
    #[must_use]
    pub fn with_recomputation(self, recompute_activations: bool) -> Self {
        Self { recompute_activations, ..self }
    }

    /// Returns the number of image tokens of an image; 0 for a text model.
    pub fn image_tokens(&self) -> usize {
        let count =
            |images: &ImageLayers| images.projector.kind().token_count(images.tower.token_count());
        self.images.as_ref().map_or(0, count)
    }

    /// Computes the patch features of images.
    ///
    /// # Shapes
    /// `n` images of `3·s·s` values to `(n, p, c_v)`.
    pub fn encode_images(&self, images: &[Arc<[f32]>]) -> Result<Tensor, Error> {
        let values: Vec<f32> = images.iter().flat_map(|i| i.iter().copied()).collect();
        let shape = (images.len(), 3, self.image_size, self.image_size);
        let layers = self.images.as_ref();
        let layers = layers.ok_or_else(|| training_error("a text model encodes no images"))?;
        Ok(layers.tower.forward(&Tensor::from_vec(values, shape, &self.device)?)?)
    }

    /// Computes the cross-entropy of the targets. Targets for which `is_counted` returns true count
    /// for the accuracy.
    pub fn loss(
        &self,
        batch: &Batch,
        is_counted: impl Fn(&TargetToken) -> bool,
    ) -> Result<ShardLoss, Error> {
        let predicted = self.target_logits(batch)?;
        let (logits, targets) = (&predicted.logits, &predicted.targets);
        let weights: Vec<f32> = targets.iter().map(|(_, target)| target.weight).collect();
        let predictions = logits.detach().argmax(1)?.to_vec1::<u32>()?;
        let counted =
            targets.iter().zip(&predictions).filter(|((_, target), _)| is_counted(target));
        let mut hits = Hits::default();
        for ((_, target), prediction) in counted {
            hits += Hits { correct: f64::from(u8::from(target.token == *prediction)), total: 1.0 };
        }
        let weight_sum = weights.iter().map(|w| f64::from(*w)).sum();
        let loss_sum = cross_entropy(logits, &predicted.target_tokens(), &weights)?;
        let loss = ShardLoss::new(loss_sum, weight_sum, hits, predicted.tokens)?;
        Ok(ShardLoss { tape: predicted.tape, ..loss })
    }

    /// Computes the logits of the targets.
    pub(super) fn target_logits(&self, batch: &Batch) -> Result<TargetLogits, Error> {
        let packing = Packing::new(batch.0);
        let layout = packing.layout(batch.0);
        let (input, trunk_layers) = match packing.scatter_hidden(batch.0, &self.device)? {
            Some(trunk_output) => (trunk_output, [].as_slice()),
            None => (self.embed(batch.0, &packing)?, self.trunk.layers()),
        };
        let mut layers = trunk_layers.iter().chain(self.head.layers());
        let (hidden, tape) = if self.recompute_activations {
            let tape = RecomputeTape::forward(input, layers, &layout)?;
            (tape.output().clone(), Some(tape))
        } else {
            let hidden = layers.try_fold(input, |x, layer| layer.forward_full(&x, &layout))?;
            (hidden, None)
        };
        let tokens = batch.0.iter().map(|s| s.len() as u64).sum();
        let sequences = batch.0.iter().enumerate();
        let targets: Vec<(usize, TargetToken)> =
            sequences.flat_map(|(i, s)| s.targets.iter().map(move |target| (i, *target))).collect();
        let indices: Vec<u32> = targets
            .iter()
            .map(|(i, target)| (packing.start(*i) + target.source_index) as u32)
            .collect();
        let indices = Tensor::from_vec(indices, targets.len(), &self.device)?;
        Ok(TargetLogits {
            logits: self.head.logits(&hidden.index_select(&indices, 0)?)?,
            targets,
            tokens,
            tape,
        })
    }

    /// Computes the output of the trunk for each sequence, for the frozen-activation cache.
    ///
    /// # Shapes
    /// One `(t, c)` for each sequence of `t` tokens.
    pub fn trunk_output(&self, batch: &Batch) -> Result<Vec<Tensor>, Error> {
        let packing = Packing::new(batch.0);
        let embedded = self.embed(batch.0, &packing)?;
        let output = self.trunk.forward(&embedded, &packing.layout(batch.0))?.detach();
        let sequences = batch.0.iter().enumerate();
        let outputs = sequences.map(|(i, s)| output.narrow(0, packing.start(i), s.len()));
        Ok(outputs.collect::<candle::Result<_>>()?)
    }

    /// Returns the patch features of the images of sequences, computed from pixels or given as
    /// input.
    ///
    /// If no sequence has an image, returns the features of an unused blank image, so that the
    /// vision tower and the projector get a gradient of zero instead of none.
    ///
    /// # Shapes
    /// `n` sequences with images to `(n, p, c_v)`.
    fn image_features(&self, sequences: &[Sequence]) -> Result<Tensor, Error> {
        let (mut pixels, mut features) = (Vec::new(), Vec::new());
        for sequence in sequences.iter().filter(|s| s.image_start.is_some()) {
            match &sequence.input {
                SequenceInput::Pixels(image) => pixels.push(image.clone()),
                SequenceInput::Features(image) => features.push(image.clone()),
                SequenceInput::Text | SequenceInput::Hidden(_) => {
                    return Err(training_error(
                        "a prompt contains an image, but its sequence has no pixels or features",
                    ));
                }
            }
        }
        match (pixels.is_empty(), features.is_empty()) {
            (_, true) => {
                if pixels.is_empty() {
                    pixels.push(vec![0.0; 3 * self.image_size * self.image_size].into());
                }
                self.encode_images(&pixels)
            }
            (true, false) => Ok(Tensor::stack(&features, 0)?.to_device(&self.device)?),
            (false, false) => Err(training_error(
                "a batch mixes images as features and as pixels, expected only one of them",
            )),
        }
    }

    /// Embeds packed sequences and inserts their image tokens.
    fn embed(&self, sequences: &[Sequence], packing: &Packing) -> Result<Tensor, Error> {
        let tokens = packing.scatter(0, sequences.iter().map(|s| s.tokens.clone()));
        let text = self.trunk.embed(&tokens)?;
        let Some(layers) = &self.images else {
            if sequences.iter().any(|sequence| sequence.image_start.is_some()) {
                return Err(training_error(
                    "a prompt contains an image, and the model is a text model",
                ));
            }
            return Ok(text);
        };
        let image = layers.projector.forward(&self.image_features(sequences)?)?;
        let (n, p, c) = image.dims3()?;
        let table = Tensor::cat(&[&text, &image.reshape((n * p, c))?], 0)?;
        let mut indices: Vec<u32> = (0..packing.len() as u32).collect();
        let mut next_image_token = packing.len() as u32;
        for (i, sequence) in sequences.iter().enumerate() {
            if let Some(image_start) = sequence.image_start {
                if image_start + p > sequence.len() {
                    let length = sequence.len();
                    return Err(training_error(&format!(
                        "{p} image tokens from index {image_start} exceed a sequence of {length} tokens"
                    )));
                }
                let first = packing.start(i) + image_start;
                for index in &mut indices[first..first + p] {
                    *index = next_image_token;
                    next_image_token += 1;
                }
            }
        }
        let indices = Tensor::from_vec(indices, packing.len(), &self.device)?;
        Ok(table.index_select(&indices, 0)?)
    }
}

fn training_error(message: &str) -> Error {
    Error::Training(message.to_owned())
}

//! Model in training: vision tower, projector, trunk and one head, from pixels to the loss.

use std::sync::Arc;

use acem3_kernels::cross_entropy;
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::consistency::{ConsistencyLoss, RowPairs};
use super::image_layers::{ImageLayers, training_error};
use super::loss::{Hits, ShardLoss};
use super::packing::Packing;
use super::recompute::RecomputeTape;
use super::sequence::{Sequence, TargetToken};
use super::training_image::ImageSpan;
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
    /// Loss of the predictions that should be equal. `None` without any.
    consistency: Option<ConsistencyLoss>,
    /// Recomputed layers. `None` without activation recomputation.
    pub(super) tape: Option<RecomputeTape>,
}

impl TargetLogits {
    /// Returns the token ids of the targets.
    pub(super) fn target_tokens(&self) -> Vec<u32> {
        self.targets.iter().map(|(_, target)| target.token).collect()
    }
}

/// A member of a panel with trainable weights.
pub struct TrainableModel {
    /// `None` in a text model.
    images: Option<ImageLayers>,
    trunk: Trunk,
    head: Head,
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

    /// Returns the number of patch features of an encoder input; 0 for a text model.
    pub fn feature_count(&self) -> usize {
        self.images.as_ref().map_or(0, ImageLayers::feature_count)
    }

    /// Computes the patch features of images, each of one or several encoder inputs.
    ///
    /// # Shapes
    /// Images of `n` inputs together, each of `3·s·s` values, to `(n, p, c_v)`.
    pub fn encode_images(&self, images: &[Arc<[f32]>]) -> Result<Tensor, Error> {
        let layers = self.images.as_ref();
        layers.ok_or_else(|| training_error("a text model encodes no images"))?.encode(images)
    }

    /// Computes the cross-entropy of the targets and the consistency loss of the predictions that should be
    /// equal. Targets for which `is_counted` returns true count for the accuracy.
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
        let equal_weights =
            batch.0.iter().flat_map(|s| &s.equal_predictions).map(|equal| equal.weight);
        let weight_sum = weights.iter().copied().chain(equal_weights).map(f64::from).sum();
        let loss_sum = cross_entropy(logits, &predicted.target_tokens(), &weights)?;
        let mut loss = ShardLoss::new(loss_sum, weight_sum, hits, predicted.tokens)?;
        if let Some(consistency) = predicted.consistency {
            loss.surrogate = (loss.surrogate + consistency.surrogate)?;
            loss.loss_sum += consistency.loss_sum;
        }
        Ok(ShardLoss { tape: predicted.tape, ..loss })
    }

    /// Computes the loss of the predictions that should be equal. `hidden`: hidden states of the packed
    /// sequences.
    fn consistency(
        &self,
        batch: &Batch,
        packing: &Packing,
        hidden: &Tensor,
    ) -> Result<Option<ConsistencyLoss>, Error> {
        let (mut rows, mut indices) = (RowPairs::default(), Vec::new());
        for (i, sequence) in batch.0.iter().enumerate() {
            for equal in &sequence.equal_predictions {
                let row = indices.len() as u32;
                rows.push(row, row + 1, equal.weight);
                indices.extend(equal.source_indices.map(|s| (packing.start(i) + s) as u32));
            }
        }
        if indices.is_empty() {
            return Ok(None);
        }
        let row_count = indices.len();
        let indices = Tensor::from_vec(indices, row_count, &self.device)?;
        Ok(rows.loss(&self.head.logits(&hidden.index_select(&indices, 0)?)?)?)
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
            consistency: self.consistency(batch, &packing, &hidden)?,
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

    /// Embeds packed sequences and inserts their image tokens.
    fn embed(&self, sequences: &[Sequence], packing: &Packing) -> Result<Tensor, Error> {
        let tokens = packing.scatter(0, sequences.iter().map(|s| s.tokens.clone()));
        let text = self.trunk.embed(&tokens)?;
        let Some(layers) = &self.images else {
            if sequences.iter().any(|sequence| sequence.image.is_some()) {
                return Err(training_error(
                    "a prompt contains an image, and the model is a text model",
                ));
            }
            return Ok(text);
        };
        let table = Tensor::cat(&[&text, &layers.tokens(sequences)?], 0)?;
        let mut indices: Vec<u32> = (0..packing.len() as u32).collect();
        let mut next_image_token = packing.len() as u32;
        for (i, sequence) in sequences.iter().enumerate() {
            if let Some(ImageSpan { start, tokens, .. }) = sequence.image {
                if start + tokens > sequence.len() {
                    let length = sequence.len();
                    return Err(training_error(&format!(
                        "{tokens} image tokens from index {start} exceed a sequence of {length} tokens"
                    )));
                }
                let first = packing.start(i) + start;
                for index in &mut indices[first..first + tokens] {
                    *index = next_image_token;
                    next_image_token += 1;
                }
            }
        }
        let indices = Tensor::from_vec(indices, packing.len(), &self.device)?;
        Ok(table.index_select(&indices, 0)?)
    }
}

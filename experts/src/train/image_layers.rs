//! Layers from pixels to the image tokens of a batch.

use std::sync::Arc;

use acem3_projector::Projector;
use acem3_vision::VisionTower;
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::sequence::Sequence;
use super::sequence_input::SequenceInput;
use crate::{Error, ImagePacking, ModelConfig};

/// Vision tower, projector and arrangement of image tokens.
pub(super) struct ImageLayers {
    tower: VisionTower,
    projector: Projector,
    packing: ImagePacking,
    device: Device,
}

impl ImageLayers {
    /// Loads the layers. `vb` is the scope `model`.
    pub(super) fn load(vb: &VarBuilder, config: &ModelConfig) -> Result<Self, Error> {
        let tower = vb.pp("vision_tower.vision_model");
        Ok(Self {
            tower: VisionTower::load(&tower, &config.vision, config.selection)?,
            projector: Projector::load(&vb.pp("mm_projector"), &config.projector)?,
            packing: ImagePacking::load(vb, &config.image_packing())?,
            device: vb.device().clone(),
        })
    }

    /// Returns the number of patch features of an encoder input.
    pub(super) fn feature_count(&self) -> usize {
        self.tower.token_count()
    }

    /// Computes the patch features of images, each of one or several encoder inputs.
    ///
    /// # Shapes
    /// Images of `n` inputs together, each of `3·s·s` values, to `(n, p, c_v)`.
    pub(super) fn encode(&self, images: &[Arc<[f32]>]) -> Result<Tensor, Error> {
        let values: Vec<f32> = images.iter().flat_map(|i| i.iter().copied()).collect();
        let inputs = values.len() / self.input_len();
        let side = self.tower.config().image_size;
        let pixels = Tensor::from_vec(values, (inputs, 3, side, side), &self.device)?;
        Ok(self.tower.forward(&pixels)?)
    }

    /// Computes the image tokens of the sequences with images, one sequence after the other.
    ///
    /// If no sequence has an image, returns the tokens of an unused blank image, so that the vision
    /// tower and the projector get a gradient of zero instead of none. For the same reason, an unused
    /// end of a row follows the tokens.
    ///
    /// # Shapes
    /// `(t, c)`.
    pub(super) fn tokens(&self, sequences: &[Sequence]) -> Result<Tensor, Error> {
        let features = self.projector.forward(&self.features(sequences)?)?;
        let Some(newline) = self.packing.newline() else {
            return Ok(features.flatten_to(1)?);
        };
        let (mut parts, mut first) = (Vec::new(), 0);
        for image in sequences.iter().filter_map(|sequence| sequence.image) {
            let inputs = features.narrow(0, first, image.grid.inputs)?;
            parts.push(self.packing.forward(&inputs, &image.grid)?);
            first += image.grid.inputs;
        }
        if parts.is_empty() {
            parts.push(features.flatten_to(1)?);
        }
        parts.push(newline.unsqueeze(0)?.to_dtype(features.dtype())?);
        Ok(Tensor::cat(&parts, 0)?)
    }

    /// Returns the patch features of the images of sequences, computed from pixels or given as
    /// input.
    ///
    /// # Shapes
    /// Images of `n` inputs together to `(n, p, c_v)`.
    fn features(&self, sequences: &[Sequence]) -> Result<Tensor, Error> {
        let (mut pixels, mut features) = (Vec::new(), Vec::new());
        for sequence in sequences.iter().filter(|s| s.image.is_some()) {
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
                    pixels.push(vec![0.0; self.input_len()].into());
                }
                self.encode(&pixels)
            }
            (true, false) => {
                let features = Tensor::cat(&features, 0)?.to_device(&self.device)?;
                let (rows, width) = features.dims2()?;
                let per_input = self.feature_count();
                Ok(features.reshape((rows / per_input, per_input, width))?)
            }
            (false, false) => Err(training_error(
                "a batch mixes images as features and as pixels, expected only one of them",
            )),
        }
    }

    /// Returns the number of pixel values of an encoder input.
    fn input_len(&self) -> usize {
        let side = self.tower.config().image_size;
        3 * side * side
    }
}

/// Returns the error of a sequence that cannot be computed.
pub(super) fn training_error(message: &str) -> Error {
    Error::Training(message.to_owned())
}

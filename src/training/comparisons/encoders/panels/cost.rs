//! What an encoder costs: tokens, time, memory and parameters.

use std::collections::HashMap;
use std::time::Instant;

use acem3_experts::ModelConfig;
use acem3_experts::train::Parameters;
use acem3_projector::Projector;
use acem3_vision::{DecodedImage, ImageProcessor, VisionTower};
use anyhow::{Context, Result};
use candle::{DType, Device, Tensor};
use serde::{Deserialize, Serialize};

/// Number of images whose encoding is timed, after one that is not.
const TIMED_IMAGES: usize = 16;

/// Costs of an encoder with its projector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncoderCost {
    /// Image tokens in a prompt.
    pub tokens_per_image: usize,
    /// Milliseconds to encode an image, from pixels to image tokens, one image at a time.
    pub milliseconds_per_image: f64,
    /// Parameters of the encoder.
    pub encoder_parameters: u64,
    /// Parameters of the projector.
    pub projector_parameters: u64,
    /// Parameters that were trained: the projector, and the trained parts of all members.
    pub trained_parameters: u64,
    /// Seconds of training, without those before an interruption; `None` if unknown.
    pub training_seconds: Option<f64>,
    /// Peak resident memory of the host in bytes while training and judging; `None` if the system
    /// does not report it.
    pub peak_memory: Option<u64>,
}

/// A trained encoder and projector.
pub(super) struct TrainedVision<'a> {
    /// Configuration of a member.
    pub(super) model: &'a ModelConfig,
    /// Preprocessing of images.
    pub(super) processor: &'a ImageProcessor,
    /// Weights of encoder and projector.
    pub(super) weights: &'a HashMap<String, Tensor>,
}

impl TrainedVision<'_> {
    /// Measures the mean time to encode an image.
    ///
    /// # Errors
    /// If an image cannot be preprocessed, or the weights do not fit the configuration.
    pub(super) fn milliseconds_per_image(
        &self,
        images: &[&DecodedImage],
        device: &Device,
    ) -> Result<f64> {
        let weights =
            self.weights.iter().map(|(name, t)| Ok((name.clone(), t.to_dtype(DType::F32)?)));
        let parameters = Parameters::from_tensors(weights.collect::<Result<Vec<_>>>()?)?;
        let parameters = parameters.to_device(device, DType::F32)?.freeze(&[String::new()]);
        let vb = parameters.builder().pp("model");
        let tower = VisionTower::load(
            &vb.pp("vision_tower.vision_model"),
            &self.model.vision,
            self.model.selection,
        )?;
        let projector = Projector::load(&vb.pp("mm_projector"), &self.model.projector)?;
        let encode = |image: &DecodedImage| -> Result<f64> {
            let start = Instant::now();
            let pixels = self.processor.preprocess(image).context("cannot preprocess an image")?;
            let tokens =
                projector.forward(&tower.forward(&pixels.unsqueeze(0)?.to_device(device)?)?)?;
            // Reading a value waits for the device.
            tokens.sum_all()?.to_dtype(DType::F32)?.to_scalar::<f32>()?;
            Ok(start.elapsed().as_secs_f64())
        };
        let mut timed = Vec::new();
        if let Some(first) = images.first() {
            encode(first)?;
        }
        for image in images.iter().take(TIMED_IMAGES) {
            timed.push(encode(image)?);
        }
        Ok(1000.0 * timed.iter().sum::<f64>() / timed.len().max(1) as f64)
    }
}

/// Counts the values of tensors.
pub(super) fn count_parameters<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> u64 {
    tensors.into_iter().map(|tensor| tensor.elem_count() as u64).sum()
}

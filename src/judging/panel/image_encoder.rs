//! Image encoder of a member: preprocessing, vision tower and projector. Converts decoded images to
//! image tokens.

use acem3_experts::ImagePacking;
use acem3_projector::Projector;
use acem3_vision::{DecodedImage, InputProcessor, ProcessError, Tiles, VisionTower};
use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use crate::checkpoints::panel::member::VisionSetup;

/// Image encoder that the members of a trunk share.
pub(crate) struct ImageEncoder {
    input: InputProcessor,
    packing: ImagePacking,
    tower: VisionTower,
    projector: Projector,
    device: Device,
}

/// Largest number of encoder inputs that the vision tower computes at once. It limits the memory for
/// images with many tiles.
const INPUTS_AT_ONCE: usize = 5;

impl ImageEncoder {
    /// Loads the vision tower and the projector from the checkpoint under `vb`.
    pub(crate) fn load(setup: &VisionSetup, vb: &VarBuilder, device: &Device) -> Result<Self> {
        let model = vb.pp("model");
        let vision = model.pp("vision_tower.vision_model");
        let processor = setup.processor.clone();
        let input = InputProcessor::new(processor, setup.tiling.as_ref(), setup.vision.image_size)?;
        Ok(Self {
            input,
            packing: ImagePacking::load(&model, &setup.image_packing())?,
            tower: VisionTower::load(&vision, &setup.vision, setup.selection)?,
            projector: Projector::load(&model.pp("mm_projector"), &setup.projector)?,
            device: device.clone(),
        })
    }

    /// Returns the tokens of an image. With tiles, their number depends on the image size.
    ///
    /// The inner error is about this image, the outer one about the panel.
    ///
    /// # Shapes
    /// `(p, c)`.
    pub(crate) fn encode(&self, image: &DecodedImage) -> Result<Result<Tensor, ProcessError>> {
        match self.prepare(image) {
            Ok(tiles) => Ok(Ok(self.project(&tiles)?)),
            Err(error @ ProcessError::TooElongated { .. }) => Ok(Err(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Preprocesses an image: the complete image, and tiles if configured.
    pub(crate) fn prepare(&self, image: &DecodedImage) -> Result<Tiles, ProcessError> {
        self.input.preprocess(image)
    }

    /// Returns the tokens of a preprocessed image, without tokens of the black padding in tiles.
    ///
    /// # Shapes
    /// `(t, c)`.
    pub(crate) fn project(&self, tiles: &Tiles) -> candle::Result<Tensor> {
        let tokens = self.encode_inputs(&tiles.pixel_values)?;
        self.packing.forward(&tokens, &tiles.grid)
    }

    /// Returns the image tokens of each encoder input.
    ///
    /// # Shapes
    /// `(n, 3, s, s)` to `(n, p, c)`.
    fn encode_inputs(&self, pixel_values: &Tensor) -> candle::Result<Tensor> {
        let count = pixel_values.dim(0)?;
        let mut parts = Vec::new();
        for start in (0..count).step_by(INPUTS_AT_ONCE) {
            let part = pixel_values.narrow(0, start, INPUTS_AT_ONCE.min(count - start))?;
            let features = self.tower.forward(&part.to_device(&self.device)?)?;
            parts.push(self.projector.forward(&features)?);
        }
        Tensor::cat(&parts, 0)
    }

    /// Encodes a grey image, so that incompatible settings are reported before the first case.
    pub(crate) fn self_test(&self) -> Result<()> {
        let grey = DecodedImage::from_rgb(64, 64, vec![127; 64 * 64 * 3]);
        let tokens = self.encode(&grey.context("a grey image")?)??;
        let values = tokens.flatten_all()?.to_vec1::<f32>()?;
        if values.iter().any(|value| !value.is_finite()) {
            bail!(
                "the image tokens of a grey image are not finite\nhint: check the processor and the weights"
            );
        }
        Ok(())
    }
}

//! From a decoded image to image tokens: processor, vision tower and projector of a panel.

use acem3_projector::Projector;
use acem3_vision::{DecodedImage, ImageProcessor, ProcessError, VisionTower};
use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::member::Sight;

/// What all members of a panel look through.
pub(super) struct Eyes {
    processor: ImageProcessor,
    tower: VisionTower,
    projector: Projector,
    device: Device,
}

impl Eyes {
    /// The vision tower and projector of the checkpoint under `vb`.
    pub(super) fn load(sight: &Sight, vb: &VarBuilder, device: &Device) -> Result<Self> {
        let model = vb.pp("model");
        let vision = model.pp("vision_tower.vision_model");
        Ok(Self {
            processor: sight.processor.clone(),
            tower: VisionTower::load(&vision, &sight.vision, sight.selection)?,
            projector: Projector::load(&model.pp("mm_projector"), &sight.projector)?,
            device: device.clone(),
        })
    }

    /// The tokens of one image. The inner error concerns this image alone, the outer one the panel.
    ///
    /// # Shapes
    /// `(p, c)`.
    pub(super) fn see(&self, image: &DecodedImage) -> Result<Result<Tensor, ProcessError>> {
        let pixels = match self.processor.preprocess(image) {
            Ok(pixels) => pixels,
            Err(error @ ProcessError::Oblong { .. }) => return Ok(Err(error)),
            Err(error) => return Err(error.into()),
        };
        let pixels = pixels.to_device(&self.device)?.unsqueeze(0)?;
        let features = self.tower.forward(&pixels)?;
        Ok(Ok(self.projector.forward(&features)?.squeeze(0)?))
    }

    /// Looks at a grey image, so that settings that do not fit each other are found before the
    /// first case.
    pub(super) fn test(&self) -> Result<()> {
        let grey = DecodedImage::from_rgb(64, 64, vec![127; 64 * 64 * 3]);
        let tokens = self.see(&grey.context("a grey image")?)??;
        let values = tokens.flatten_all()?.to_vec1::<f32>()?;
        if values.iter().any(|value| !value.is_finite()) {
            bail!(
                "the image tokens of a grey image are not finite\nhint: check the processor and the weights"
            );
        }
        Ok(())
    }
}

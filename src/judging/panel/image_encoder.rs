//! Image encoder of a member: preprocessing, vision tower and projector. Converts decoded images to
//! image tokens.

use acem3_projector::{Projector, TileLayout, pack_tiles};
use acem3_vision::{
    AnyRes, DecodedImage, DynamicTiles, ImageProcessor, ProcessError, Tiles, Tiling, VisionTower,
};
use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use crate::checkpoints::panel::member::VisionSetup;

/// Largest number of encoder inputs that the vision tower computes at once. Attention takes memory
/// in proportion.
const MAX_BATCH: usize = 5;

/// Image encoder that the members of a trunk share.
pub(crate) struct ImageEncoder {
    input: ImageInput,
    packing: TokenPacking,
    tower: VisionTower,
    projector: Projector,
    device: Device,
}

/// Preprocessing for the vision tower.
enum ImageInput {
    /// The complete image.
    Whole(ImageProcessor),
    /// The complete image, followed by tiles.
    Tiled(AnyRes),
    /// Tiles, followed by the complete image.
    Dynamic(DynamicTiles),
}

/// Arrangement of the image tokens of the encoder inputs of one image.
enum TokenPacking {
    /// The tokens of all encoder inputs, one after the other.
    Sequence,
    /// The tokens of the complete image, then those of the tiles, in rows that end with this
    /// embedding, shape `(c)`.
    Rows { newline: Tensor },
}

impl ImageEncoder {
    /// Loads the vision tower and the projector from the checkpoint under `vb`.
    pub(crate) fn load(setup: &VisionSetup, vb: &VarBuilder, device: &Device) -> Result<Self> {
        let model = vb.pp("model");
        let vision = model.pp("vision_tower.vision_model");
        let processor = setup.processor.clone();
        let (input, packing) = match &setup.tiling {
            None => (ImageInput::Whole(processor), TokenPacking::Sequence),
            Some(Tiling::Dynamic { min_tiles, max_tiles, thumbnail }) => {
                let tiles = DynamicTiles::new(processor, *min_tiles, *max_tiles, *thumbnail)?;
                (ImageInput::Dynamic(tiles), TokenPacking::Sequence)
            }
            Some(Tiling::Pinpoints(pinpoints)) => {
                let newline = model.get(setup.projector.hidden_size, "image_newline")?;
                let any_res = AnyRes::new(processor, pinpoints.clone())?;
                (ImageInput::Tiled(any_res), TokenPacking::Rows { newline })
            }
        };
        Ok(Self {
            input,
            packing,
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
        match &self.input {
            ImageInput::Whole(processor) => Ok(Tiles {
                pixel_values: processor.preprocess(image)?.unsqueeze(0)?,
                grid: (0, 0),
                image_size: (image.height(), image.width()),
            }),
            ImageInput::Tiled(any_res) => any_res.preprocess(image),
            ImageInput::Dynamic(tiles) => tiles.preprocess(image),
        }
    }

    /// Returns the tokens of a preprocessed image, without tokens of the black padding in tiles.
    ///
    /// # Shapes
    /// `(t, c)`.
    pub(crate) fn project(&self, tiles: &Tiles) -> candle::Result<Tensor> {
        let pixel_values = tiles.pixel_values.to_device(&self.device)?;
        let inputs = pixel_values.dim(0)?;
        let parts = (0..inputs).step_by(MAX_BATCH).map(|start| {
            let part = pixel_values.narrow(0, start, MAX_BATCH.min(inputs - start))?;
            self.projector.forward(&self.tower.forward(&part)?)
        });
        let tokens = Tensor::cat(&parts.collect::<candle::Result<Vec<_>>>()?, 0)?;
        match &self.packing {
            TokenPacking::Sequence => tokens.flatten_to(1),
            TokenPacking::Rows { newline } => {
                let (rows, columns) = tiles.grid;
                let (token_rows, token_columns) =
                    tiles.content_region(self.tower.config().grid_side());
                let layout = TileLayout { rows, columns, token_rows, token_columns };
                pack_tiles(&tokens, &layout, newline)
            }
        }
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

//! A published encoder: its configuration, its image processor and the names of its tensors.

use candle_nn::VarBuilder;

use super::error::PublishedError;
use super::layout::Layout;
use crate::config::{SelectFeature, Selection, VisionConfig};
use crate::processor::ImageProcessor;
use crate::tower::VisionTower;

/// A published encoder, as described by its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Naming scheme of its tensors.
    pub layout: Layout,
    /// The network.
    pub config: VisionConfig,
    /// Preprocessing of images.
    pub processor: ImageProcessor,
}

impl Published {
    /// Checks that the processor's output size is the network's input size.
    pub fn check(&self) -> Result<(), PublishedError> {
        self.config.validate()?;
        let side = self.config.image_size;
        match self.processor.output_size() {
            Some(size) if size == (side, side) => Ok(()),
            size => Err(PublishedError::Sizes { size, side }),
        }
    }

    /// Returns the commonly used patch features: the last but one state of CLIP (`LLaVA`),
    /// elsewhere the last one, normed (`PaliGemma` with `SigLIP`, `DINOv2`'s patch tokens, `timm`).
    pub fn selection(&self) -> Selection {
        let clip = matches!(self.layout, Layout::Clip | Layout::OpenClip);
        Selection {
            select_layer: if clip { -2 } else { -1 },
            select_feature: SelectFeature::Patch,
            post_norm: !clip,
        }
    }

    /// The encoder from tensors that [`Renaming::weights`](super::Renaming::weights) checked and named, in the type and on the device
    /// of the builder.
    pub fn load(&self, vb: &VarBuilder, selection: Selection) -> candle::Result<VisionTower> {
        VisionTower::load(vb, &self.config, selection)
    }
}

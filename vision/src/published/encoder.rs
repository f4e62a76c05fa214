//! Published encoder: configuration, image processor and tensor naming scheme.

use candle_nn::VarBuilder;

use super::error::PublishedError;
use super::layout::EncoderLayout;
use crate::config::{SelectFeature, Selection, VisionConfig};
use crate::processor::ImageProcessor;
use crate::tower::VisionTower;

/// Published encoder, as described by its files.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedEncoder {
    /// Naming scheme of the tensors.
    pub layout: EncoderLayout,
    /// Configuration of the network.
    pub config: VisionConfig,
    /// Preprocessing of images.
    pub processor: ImageProcessor,
}

impl PublishedEncoder {
    /// Checks the numbers of both configurations, and that the processor's output size is the
    /// network's input size.
    pub fn check(&self) -> Result<(), PublishedError> {
        self.config.validate()?;
        self.processor
            .validate()
            .map_err(|error| PublishedError::Processor { problem: error.to_string() })?;
        let side = self.config.image_size;
        match self.processor.output_size() {
            Some(size) if size == (side, side) => Ok(()),
            output_size => Err(PublishedError::SizeMismatch { output_size, image_size: side }),
        }
    }

    /// Returns the usual selection of patch features for the architecture.
    ///
    /// CLIP: the output of the second-to-last block (as in `LLaVA`). `InternViT`: the output of the
    /// last block. Others: the output of the last block after the final norm (as in `PaliGemma` with
    /// `SigLIP`, `DINOv2`'s patch tokens, `timm`).
    pub fn default_selection(&self) -> Selection {
        let is_clip = matches!(self.layout, EncoderLayout::Clip | EncoderLayout::OpenClip);
        Selection {
            select_layer: if is_clip { -2 } else { -1 },
            select_feature: SelectFeature::Patch,
            post_norm: !is_clip && self.config.variant.post_norm,
        }
    }

    /// Loads the vision tower with the builder's dtype and device.
    ///
    /// The builder contains the tensors returned by
    /// [`TensorRenaming::rename_tensors`](super::TensorRenaming::rename_tensors).
    pub fn load(&self, vb: &VarBuilder, selection: Selection) -> candle::Result<VisionTower> {
        VisionTower::load(vb, &self.config, selection)
    }
}

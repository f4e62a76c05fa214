//! Published encoders: from the files of a repository to a configuration, a processor and renamed tensors.
//!
//! Files are read by whoever calls; here arrive their parsed JSON and their tensors. Whatever the publisher's
//! layout, what leaves is one [`VisionConfig`], one [`ImageProcessor`] and the tensor names that
//! [`Vit`](crate::Vit) loads.

mod error;
mod hub;
mod layout;
mod names;
mod open_clip;
mod preprocessor;
mod registry;
mod section;
mod weights;

use candle_nn::VarBuilder;
use serde_json::Value;

pub use error::{PublishedError, WeightsError};
pub use hub::Network;
pub use layout::Layout;
pub use names::{Place, Renaming};
pub use preprocessor::{any_res, image_processor};
pub use registry::{ENTRIES, Entry, called, known};

use crate::config::{SelectFeature, Selection, VisionConfig};
use crate::processor::ImageProcessor;
use crate::tower::VisionTower;

/// The JSON files of a repository, those that it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// `config.json`.
    pub config: Option<&'a Value>,
    /// `open_clip_config.json`.
    pub open_clip_config: Option<&'a Value>,
    /// `preprocessor_config.json`, or `processor_config.json`, in whose `image_processor` it then lies.
    pub preprocessor_config: Option<&'a Value>,
}

/// What the files say about an encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// How its tensors are named.
    pub layout: Layout,
    /// The network.
    pub config: VisionConfig,
    /// How images are prepared for it.
    pub processor: ImageProcessor,
}

impl Published {
    /// Reads the files. A `config.json` of an architecture that is known goes before an
    /// `open_clip_config.json` (repositories with both hold the weights in both forms).
    pub fn open(files: &Files<'_>) -> Result<Self, PublishedError> {
        let published = match (files.config, files.open_clip_config) {
            (Some(config), open_clip) if open_clip.is_none() || hub::is_known(config) => {
                hub::open(config, files.preprocessor_config)?
            }
            (_, Some(open_clip)) => open_clip::open(open_clip)?,
            (_, None) => {
                return Err(PublishedError::Missing {
                    file: "config.json",
                });
            }
        };
        published.check()?;
        Ok(published)
    }

    /// Whether the processor's images are those that the network takes.
    pub fn check(&self) -> Result<(), PublishedError> {
        self.config.validate()?;
        let side = self.config.image_size;
        match self.processor.output_size() {
            Some(size) if size == (side, side) => Ok(()),
            size => Err(PublishedError::Sizes { size, side }),
        }
    }

    /// The patch features for which the encoder is commonly taken: the last but one state of CLIP (`LLaVA`),
    /// elsewhere the last one, normed (`PaliGemma` with `SigLIP`, `DINOv2`'s patch tokens, `timm`).
    pub fn selection(&self) -> Selection {
        let clip = matches!(self.layout, Layout::Clip | Layout::OpenClip);
        Selection {
            select_layer: if clip { -2 } else { -1 },
            select_feature: SelectFeature::Patch,
            post_norm: !clip,
        }
    }

    /// The encoder from tensors that [`Renaming::weights`] checked and named, in the type and on the device
    /// of the builder.
    pub fn load(&self, vb: &VarBuilder, selection: Selection) -> candle::Result<VisionTower> {
        VisionTower::load(vb, &self.config, selection)
    }
}

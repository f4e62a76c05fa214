//! Published encoders: reads the configuration, the image processor and the tensor names of a repository.
//!
//! The caller reads the files; this module takes their parsed JSON and their tensors. For every publisher's layout the
//! result is one [`VisionConfig`](crate::VisionConfig), one [`ImageProcessor`](crate::ImageProcessor) and the tensor
//! names that [`Vit`](crate::Vit) loads.

mod encoder;
mod error;
mod files;
mod hub;
mod layout;
mod names;
mod open_clip;
mod preprocessor;
mod registry;
mod section;
mod weights;

pub use encoder::Published;
pub use error::{PublishedError, WeightsError};
pub use files::Files;
pub use hub::Network;
pub use layout::Layout;
pub use names::{Place, Renaming};
pub use preprocessor::{any_res, image_processor};
pub use registry::{ENTRIES, Entry, called, known};

//! Published encoders: configuration, image processor and tensor names of a repository.
//!
//! The caller reads the files; this module interprets their parsed JSON and their tensors. For
//! every layout, it returns a [`VisionConfig`](crate::VisionConfig), an
//! [`ImageProcessor`](crate::ImageProcessor) and the tensor names that [`Vit`](crate::Vit) loads.

mod encoder;
mod encoder_files;
mod error;
mod intern_vit;
mod json_section;
mod layout;
mod open_clip;
mod preprocessor;
mod registry;
mod tensor_roles;
mod transformers;
mod weights;

pub use encoder::PublishedEncoder;
pub use encoder_files::EncoderFiles;
pub use error::{PublishedError, WeightsError};
pub use layout::EncoderLayout;
pub use preprocessor::{read_any_res, read_dynamic_tiling, read_image_processor};
pub use registry::{KNOWN_ENCODERS, KnownEncoder, encoder_by_name, encoder_by_repository};
pub use tensor_roles::{TensorRenaming, TensorRole};
pub use transformers::EncoderNetwork;

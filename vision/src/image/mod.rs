//! Decodes image files to RGB pixels.
//!
//! The pixels equal those of Pillow's `convert("RGB")`, because the published models were trained
//! on them, with two differences: the EXIF orientation is applied, and 16-bit grey images are
//! scaled to their range instead of clipped at 255. The grey-scale window of DICOM objects is
//! applied.

mod decode;
mod decoded_image;
mod detect;
mod dicom;
mod error;
mod format;
mod jpeg;
mod limits;
mod png;
mod rgb;
mod tracked_reader;

pub use decode::{decode, decode_with_view};
pub use decoded_image::{DecodedImage, ImageHeader};
pub use detect::detect_format;
pub use dicom::{AppliedView, AppliedWindow, DicomView, DicomWindow, WindowSource};
pub use error::DecodeError;
pub use format::FileFormat;
pub use limits::ImageLimits;

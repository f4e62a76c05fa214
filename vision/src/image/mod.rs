//! Image files to pixels.
//!
//! The result is what Pillow's `convert("RGB")` gives, for the published models were trained on that, with
//! two differences: the orientation the file states is applied, and a grey image of 16 bits is scaled to
//! its range instead of being cut off at 255. DICOM objects are shown through their window.

mod decode;
mod decoded_image;
mod detect;
mod dicom;
mod error;
mod format;
mod jpeg;
mod limits;
mod rgb;
mod watched;

pub use decode::{decode, decode_view};
pub use decoded_image::DecodedImage;
pub use detect::detect_format;
pub use dicom::{Shown, ShownWindow, View, Window, WindowSource};
pub use error::DecodeError;
pub use format::Format;
pub use limits::Limits;

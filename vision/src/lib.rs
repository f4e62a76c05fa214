//! Image bytes to patch features: decoding, preprocessing and the vision tower of acem3.
//!
//! Shape letters: `b` batch, `s` image side, `p` patches, `t` tokens, `c` hidden size, `c_v` vision hidden
//! size, `h` heads, `h_kv` key/value heads, `d` head size, `v` vocabulary.

pub mod config;
pub mod encoder;
pub mod image;
pub mod processor;
pub mod published;
pub mod resize;
pub mod tower;
pub mod vit;

pub use config::{ConfigError, Form, SelectFeature, Selection, VisionConfig};
pub use encoder::Encoder;
pub use image::{DecodeError, DecodedImage, Format, Limits, decode, decode_view, detect_format};
pub use image::{Shown, ShownWindow, View, Window, WindowSource};
pub use processor::{AnyRes, ImageProcessor, ProcessError, Tiles};
pub use published::{Layout, Published, Renaming};
pub use tower::VisionTower;
pub use vit::Vit;

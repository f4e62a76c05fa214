//! From image bytes to patch features: image decoding, preprocessing and the vision tower of acem3.
//!
//! Shape letters: `b` batch, `s` image side, `p` patches, `t` tokens, `c` hidden size, `c_v` vision
//! hidden size, `h` heads, `h_kv` key/value heads, `d` head size, `v` vocabulary.

pub mod config;
pub mod encoder;
pub mod image;
pub mod processor;
pub mod published;
pub mod resample;
pub mod resize;
pub mod tower;
pub mod vit;

pub use config::{ConfigError, SelectFeature, Selection, VisionConfig, VitVariant};
pub use encoder::Encoder;
pub use image::{AppliedView, AppliedWindow, DicomView, DicomWindow, WindowSource};
pub use image::{
    DecodeError, DecodedImage, FileFormat, ImageHeader, ImageLimits, decode, decode_with_view,
    detect_format,
};
pub use processor::{
    AnyRes, AnyResMax, DynamicTiles, ImageProcessor, InputProcessor, ProcessError, RegionRounding,
    Resolutions, TileGrid, Tiles, Tiling,
};
pub use published::{EncoderLayout, PublishedEncoder, TensorRenaming};
pub use tower::VisionTower;
pub use vit::Vit;

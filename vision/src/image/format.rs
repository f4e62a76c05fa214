//! The supported image formats.

use serde::{Deserialize, Serialize};

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Baseline and progressive, of grey, `YCbCr`, RGB, CMYK and YCCK.
    Jpeg,
    /// All colour types and depths; of an animation the first image.
    Png,
    /// Windows bitmaps.
    Bmp,
    /// Grey, RGB and CMYK of 8 or 16 bits; of several pages the first.
    Tiff,
    /// Lossy and lossless; of an animation the first image.
    WebP,
    /// DICOM objects: grey of 8 to 16 bits and colour; of several frames the middle one.
    Dicom,
}

impl Format {
    /// The name, as in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
            Self::WebP => "WebP",
            Self::Dicom => "DICOM",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

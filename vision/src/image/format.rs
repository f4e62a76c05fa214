//! Supported image formats.

use serde::{Deserialize, Serialize};

/// Supported image format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// Baseline and progressive JPEG in grey, `YCbCr`, RGB, CMYK and YCCK.
    Jpeg,
    /// PNG of all colour types and depths; the first image of an animation.
    Png,
    /// Windows bitmaps.
    Bmp,
    /// TIFF in grey, RGB and CMYK with 8 or 16 bits; the first page.
    Tiff,
    /// Lossy and lossless WebP; the first image of an animation.
    WebP,
    /// DICOM objects in colour or grey with 8 to 16 bits; by default the middle frame.
    Dicom,
}

impl FileFormat {
    /// Returns the name for messages.
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

impl std::fmt::Display for FileFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

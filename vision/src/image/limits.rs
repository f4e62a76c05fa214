//! Size limits for image files.

use serde::{Deserialize, Serialize};

/// Size limits for image files, checked before memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageLimits {
    /// Maximum file size in bytes.
    pub bytes: usize,
    /// Maximum number of pixels, width times height.
    pub pixels: u64,
}

impl Default for ImageLimits {
    /// 64 MiB and 50 megapixels. With 16 bits per sample, decoding then takes up to 550 MB.
    fn default() -> Self {
        Self { bytes: 64 << 20, pixels: 50_000_000 }
    }
}

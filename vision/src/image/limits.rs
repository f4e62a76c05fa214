//! Size limits for image files.

/// Size limits for image files, checked before memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Maximum file size in bytes.
    pub bytes: usize,
    /// Maximum number of pixels, width times height.
    pub pixels: u64,
}

impl Default for ImageLimits {
    /// 64 MiB and 100 megapixels.
    fn default() -> Self {
        Self { bytes: 64 << 20, pixels: 100_000_000 }
    }
}

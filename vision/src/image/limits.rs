//! Size limits for image files.

/// The largest image file that is decoded. Both limits are checked before memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// File size in bytes.
    pub bytes: usize,
    /// Number of pixels, width times height.
    pub pixels: u64,
}

impl Default for Limits {
    /// 64 MiB and 100 megapixels.
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            pixels: 100_000_000,
        }
    }
}

//! Decoded image.

use super::dicom::view::AppliedView;
use super::format::FileFormat;

/// Upright RGB image in memory.
#[derive(Clone, PartialEq)]
pub struct DecodedImage {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) data: Vec<u8>,
    pub(super) format: FileFormat,
    pub(super) stored_size: (usize, usize),
    pub(super) orientation: u8,
    pub(super) applied_view: Option<AppliedView>,
}

impl DecodedImage {
    /// Creates an image from pixels of three bytes each, row by row from the top.
    ///
    /// Returns `None` unless `data` has `3 · width · height` bytes and at least one pixel.
    pub fn from_rgb(width: usize, height: usize, data: Vec<u8>) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (bytes > 0 && bytes == data.len()).then_some(Self {
            width,
            height,
            data,
            format: FileFormat::Png,
            stored_size: (width, height),
            orientation: 1,
            applied_view: None,
        })
    }

    /// Returns the width in pixels, after the orientation is applied.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height in pixels, after the orientation is applied.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the pixels, three bytes each (red, green, blue), row by row from the top.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the format of the file.
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns width and height in the file, before the orientation is applied.
    pub fn stored_size(&self) -> (usize, usize) {
        self.stored_size
    }

    /// Returns the EXIF orientation (1 to 8) that was applied; 1 if the image was stored upright.
    pub fn orientation(&self) -> u8 {
        self.orientation
    }

    /// Returns the frame and window that were decoded; `None` unless the file is a DICOM object.
    pub fn applied_view(&self) -> Option<&AppliedView> {
        self.applied_view.as_ref()
    }

    /// Marks the image as a frame of a DICOM object.
    pub(super) fn with_dicom_view(self, applied_view: AppliedView) -> Self {
        Self { format: FileFormat::Dicom, applied_view: Some(applied_view), ..self }
    }

    /// Returns one row of pixels; empty if `y` is below the image.
    pub(crate) fn row(&self, y: usize) -> &[u8] {
        self.data.chunks_exact(3 * self.width).nth(y).unwrap_or_default()
    }
}

impl std::fmt::Debug for DecodedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DecodedImage({} {}x{})", self.format, self.width, self.height)
    }
}

//! The decoded image.

use super::dicom::Shown;
use super::format::Format;

/// An upright RGB image in memory.
#[derive(Clone, PartialEq)]
pub struct DecodedImage {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) data: Vec<u8>,
    pub(super) format: Format,
    pub(super) stored: (usize, usize),
    pub(super) orientation: u8,
    pub(super) shown: Option<Shown>,
}

impl DecodedImage {
    /// Creates an image from pixels of three bytes each, row by row from the top.
    /// Returns `None` unless `data` has `3 · width · height` bytes and at least one pixel.
    pub fn from_rgb(width: usize, height: usize, data: Vec<u8>) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (bytes > 0 && bytes == data.len()).then_some(Self {
            width,
            height,
            data,
            format: Format::Png,
            stored: (width, height),
            orientation: 1,
            shown: None,
        })
    }

    /// Width in pixels, after the orientation is applied.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels, after the orientation is applied.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixels, three bytes each (red, green, blue), row by row from the top.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The file's format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Width and height in the file, before the orientation is applied.
    pub fn stored_size(&self) -> (usize, usize) {
        self.stored
    }

    /// The EXIF orientation (1 to 8) that was applied; 1 if the image was stored upright.
    pub fn orientation(&self) -> u8 {
        self.orientation
    }

    /// The frame and window that were shown, for a DICOM object.
    pub fn shown(&self) -> Option<&Shown> {
        self.shown.as_ref()
    }

    /// Marks the image as a frame of a DICOM object.
    pub(super) fn with_dicom_view(self, shown: Shown) -> Self {
        Self {
            format: Format::Dicom,
            shown: Some(shown),
            ..self
        }
    }

    /// One row of pixels; empty below the image.
    pub(crate) fn row(&self, y: usize) -> &[u8] {
        self.data
            .chunks_exact(3 * self.width)
            .nth(y)
            .unwrap_or_default()
    }
}

impl std::fmt::Debug for DecodedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "DecodedImage({} {}x{})",
            self.format, self.width, self.height
        )
    }
}

//! Decoded image.

use super::dicom::view::AppliedView;
use super::format::FileFormat;

use serde::{Deserialize, Serialize};

/// Upright RGB image in memory.
#[derive(Clone, PartialEq)]
pub struct DecodedImage {
    header: ImageHeader,
    data: Vec<u8>,
}

/// Everything about a decoded image except its pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageHeader {
    /// Width in pixels, after the orientation is applied.
    pub width: usize,
    /// Height in pixels, after the orientation is applied.
    pub height: usize,
    /// Format of the file.
    pub format: FileFormat,
    /// Width and height in the file, before the orientation is applied.
    pub stored_size: (usize, usize),
    /// EXIF orientation (1 to 8) that was applied.
    pub orientation: u8,
    /// Frame and window of a DICOM object.
    pub applied_view: Option<AppliedView>,
    /// True for a DICOM object of computed tomography.
    pub is_ct: bool,
}

impl DecodedImage {
    /// Creates an image from its header and pixels of three bytes each, row by row from the top.
    ///
    /// Returns `None` unless `data` has `3 · width · height` bytes and at least one pixel.
    pub fn new(header: ImageHeader, data: Vec<u8>) -> Option<Self> {
        let bytes = header.width.checked_mul(header.height)?.checked_mul(3)?;
        (bytes > 0 && bytes == data.len()).then_some(Self { header, data })
    }

    /// Splits the image into header and pixels.
    pub fn into_parts(self) -> (ImageHeader, Vec<u8>) {
        (self.header, self.data)
    }

    /// Creates an image from pixels of three bytes each, row by row from the top.
    ///
    /// Returns `None` unless `data` has `3 · width · height` bytes and at least one pixel.
    pub fn from_rgb(width: usize, height: usize, data: Vec<u8>) -> Option<Self> {
        let header = ImageHeader {
            width,
            height,
            format: FileFormat::Png,
            stored_size: (width, height),
            orientation: 1,
            applied_view: None,
            is_ct: false,
        };
        Self::new(header, data)
    }

    /// Returns the width in pixels, after the orientation is applied.
    pub fn width(&self) -> usize {
        self.header.width
    }

    /// Returns the height in pixels, after the orientation is applied.
    pub fn height(&self) -> usize {
        self.header.height
    }

    /// Returns the pixels, three bytes each (red, green, blue), row by row from the top.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the format of the file.
    pub fn format(&self) -> FileFormat {
        self.header.format
    }

    /// Returns width and height in the file, before the orientation is applied.
    pub fn stored_size(&self) -> (usize, usize) {
        self.header.stored_size
    }

    /// Returns the EXIF orientation (1 to 8) that was applied; 1 if the image was stored upright.
    pub fn orientation(&self) -> u8 {
        self.header.orientation
    }

    /// Returns the frame and window that were decoded; `None` unless the file is a DICOM object.
    pub fn applied_view(&self) -> Option<&AppliedView> {
        self.header.applied_view.as_ref()
    }

    /// Returns true for a DICOM object of computed tomography, whose windows are in Hounsfield units.
    pub fn is_ct(&self) -> bool {
        self.header.is_ct
    }

    /// Marks the image as a frame of a DICOM object.
    pub(super) fn with_dicom_view(self, applied_view: AppliedView, is_ct: bool) -> Self {
        let applied_view = Some(applied_view);
        let header = ImageHeader { format: FileFormat::Dicom, applied_view, is_ct, ..self.header };
        Self { header, ..self }
    }

    /// Returns one row of pixels; empty if `y` is below the image.
    pub fn row(&self, y: usize) -> &[u8] {
        self.data.chunks_exact(3 * self.header.width).nth(y).unwrap_or_default()
    }
}

impl std::fmt::Debug for DecodedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "DecodedImage({} {}x{})",
            self.header.format, self.header.width, self.header.height
        )
    }
}

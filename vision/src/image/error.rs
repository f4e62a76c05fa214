//! Errors of decoding image files.

use super::format::FileFormat;

/// Error of an image file. Messages do not name the file: the caller writes `{file}: {error}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// An empty file.
    #[error("the image file is empty\nhint: check that its download or export finished")]
    Empty,
    /// A recognised but unsupported format.
    #[error(
        "unsupported image format {name}, expected JPEG, PNG, BMP, TIFF, WebP or DICOM\n\
         hint: convert the image to PNG"
    )]
    UnsupportedFormat {
        /// Name of the format.
        name: &'static str,
    },
    /// An unknown format.
    #[error(
        "unknown image format, expected JPEG, PNG, BMP, TIFF, WebP or DICOM, \
         found the first bytes {first_bytes}\n\
         hint: check that the file is an image"
    )]
    UnknownFormat {
        /// First four bytes in hexadecimal; too few to disclose personal data.
        first_bytes: String,
    },
    /// A file larger than the limit.
    #[error(
        "the image file has {size} bytes, the limit is {limit}\n\
         hint: compress the image or scale it down"
    )]
    TooManyBytes {
        /// File size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// An image with more pixels than the limit.
    #[error(
        "the {format} image has {width} x {height} pixels, the limit is {limit} pixels\n\
         hint: scale it down; no model uses that many pixels"
    )]
    TooManyPixels {
        /// Format of the file.
        format: FileFormat,
        /// Width in the file's header, in pixels.
        width: u32,
        /// Height in the file's header, in pixels.
        height: u32,
        /// Limit in pixels.
        limit: u64,
    },
    /// An image with more scans than the limit.
    #[error(
        "the {format} image has {scans} scans, the limit for its size is {limit}\n\
         hint: save it again as a baseline JPEG or as PNG"
    )]
    TooManyScans {
        /// Format of the image.
        format: FileFormat,
        /// Number of scans.
        scans: usize,
        /// Maximum number of scans of an image of this size.
        limit: usize,
    },
    /// A file that ends before the end of the image.
    #[error("the {format} file is truncated\nhint: copy or download it again")]
    Truncated {
        /// Format of the file.
        format: FileFormat,
    },
    /// An unsupported variant of a format.
    #[error("unsupported {format} image: {problem}\nhint: convert the image to 8-bit PNG")]
    UnsupportedVariant {
        /// Format of the file.
        format: FileFormat,
        /// Message of the decoder.
        problem: String,
    },
    /// A DICOM object without pixels.
    #[error(
        "the DICOM object contains no image\n\
         hint: reports, plans and presentation states have no pixels; pass the image object"
    )]
    NoPixels,
    /// A frame or window that the object does not have.
    #[error("invalid frame or window for the DICOM image: {problem}\nhint: {hint}")]
    InvalidView {
        /// Requested and available frames or windows.
        problem: String,
        /// How to fix it.
        hint: &'static str,
    },
    /// A file that violates its format.
    #[error("the {format} file is damaged: {problem}\nhint: copy or export it again")]
    Damaged {
        /// Format of the file.
        format: FileFormat,
        /// Message of the decoder.
        problem: String,
    },
}

impl DecodeError {
    /// Converts an error of a decoder. `is_exhausted`: the decoder read past the end of the file.
    pub(super) fn from_decoder(
        format: FileFormat,
        error: &image::ImageError,
        is_exhausted: bool,
    ) -> Self {
        let problem = one_line(&error.to_string());
        match error {
            image::ImageError::Unsupported(_) => Self::UnsupportedVariant { format, problem },
            _ if is_exhausted => Self::Truncated { format },
            _ => Self::Damaged { format, problem },
        }
    }

    /// Returns the error for a panic in a decoder.
    pub(super) fn decoder_panic(format: FileFormat) -> Self {
        Self::Damaged { format, problem: "the decoder failed".to_owned() }
    }
}

/// Replaces line breaks and repeated spaces by single spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

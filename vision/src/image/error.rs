//! Errors of decoding image files.

use super::format::Format;

/// Error of an image file. Messages do not name the file: the caller writes `{file}: {error}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No bytes at all.
    #[error("the image file is empty\nhint: check that its download or export finished")]
    Empty,
    /// A recognised but unsupported format.
    #[error(
        "unsupported image format: {name}\n\
         hint: convert it to PNG; expected JPEG, PNG, BMP, TIFF, WebP or DICOM"
    )]
    Foreign {
        /// The name of the format.
        name: &'static str,
    },
    /// An unknown format.
    #[error(
        "unknown image format, the file begins with the bytes {first}\n\
         hint: expected JPEG, PNG, BMP, TIFF, WebP or DICOM"
    )]
    Unknown {
        /// The first four bytes in hexadecimal, too few to disclose personal data.
        first: String,
    },
    /// File larger than the limit.
    #[error(
        "the image file has {got} bytes, the limit is {limit}\n\
         hint: compress the image or scale it down"
    )]
    TooManyBytes {
        /// The size of the file.
        got: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// More pixels than the limit.
    #[error(
        "the {format} image has {width} x {height} pixels, the limit is {limit} in all\n\
         hint: scale it down; no model uses that many pixels"
    )]
    TooManyPixels {
        /// The format.
        format: Format,
        /// The width the file states.
        width: u32,
        /// The height the file states.
        height: u32,
        /// The limit in pixels.
        limit: u64,
    },
    /// The file ends before the image does.
    #[error("the {format} file is truncated\nhint: copy or download it again")]
    Truncated {
        /// The format.
        format: Format,
    },
    /// An unsupported variant of a format.
    #[error("unsupported {format} image: {what}\nhint: convert it to PNG of 8 bits")]
    Unsupported {
        /// The format.
        format: Format,
        /// Message of the decoder.
        what: String,
    },
    /// An object without pixels.
    #[error(
        "the DICOM object holds no image\n\
         hint: reports, plans and presentation states have no pixels; pass the image object"
    )]
    NoPixels,
    /// A frame or window that an object does not have.
    #[error("invalid frame or window for the DICOM image: {what}\nhint: {hint}")]
    View {
        /// Requested and available frames or windows.
        what: String,
        /// How to fix it.
        hint: &'static str,
    },
    /// A file that violates its format.
    #[error("the {format} file is damaged: {what}\nhint: copy or export it again")]
    Damaged {
        /// The format.
        format: Format,
        /// Message of the decoder.
        what: String,
    },
}

impl DecodeError {
    /// Converts an error of a decoder. `exhausted`: the decoder read past the end of the file.
    pub(super) fn from_decoder(format: Format, error: &image::ImageError, exhausted: bool) -> Self {
        let what = one_line(&error.to_string());
        match error {
            image::ImageError::Unsupported(_) => Self::Unsupported { format, what },
            _ if exhausted => Self::Truncated { format },
            _ => Self::Damaged { format, what },
        }
    }

    /// Returns the error for a panic in a decoder.
    pub(super) fn broken_decoder(format: Format) -> Self {
        Self::Damaged {
            format,
            what: "the decoder failed".to_owned(),
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

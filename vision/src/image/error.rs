//! Why a file is not an image we can look at.

use super::format::Format;

/// What is wrong with an image file. Messages do not name the file: the caller writes `{file}: {error}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No bytes at all.
    #[error("the image file is empty\nhint: check that the download or export of it finished")]
    Empty,
    /// A format that is known by name only.
    #[error(
        "{name} is not a format that is read\n\
         hint: convert it to PNG; expected JPEG, PNG, BMP, TIFF, WebP or DICOM"
    )]
    Foreign {
        /// The name of the format.
        name: &'static str,
    },
    /// Nothing that looks like an image.
    #[error(
        "unknown image format, the file begins with the bytes {first}\n\
         hint: expected JPEG, PNG, BMP, TIFF, WebP or DICOM"
    )]
    Unknown {
        /// The first four in hexadecimal: a signature, and too little of a text to tell anything of anybody.
        first: String,
    },
    /// More bytes than are read.
    #[error(
        "the image file has {got} bytes, the limit is {limit}\n\
         hint: store it compressed, or scaled down"
    )]
    TooManyBytes {
        /// The size of the file.
        got: usize,
        /// The most that is read.
        limit: usize,
    },
    /// More pixels than are decoded.
    #[error(
        "the {format} image has {width} x {height} pixels, the limit is {limit} in all\n\
         hint: scale it down; no model looks at so many"
    )]
    TooManyPixels {
        /// The format.
        format: Format,
        /// The width the file states.
        width: u32,
        /// The height the file states.
        height: u32,
        /// The most that are decoded.
        limit: u64,
    },
    /// The file ends before the image does.
    #[error("the {format} file is truncated\nhint: copy or download it again")]
    Truncated {
        /// The format.
        format: Format,
    },
    /// A kind of its format that is not read.
    #[error("unsupported {format} image: {what}\nhint: convert it to PNG of 8 bits")]
    Unsupported {
        /// The format.
        format: Format,
        /// The decoder's words.
        what: String,
    },
    /// An object without pixels.
    #[error(
        "the DICOM object holds no image\n\
         hint: reports, plans and presentation states have no pixels; name the object of the image itself"
    )]
    NoPixels,
    /// A frame or window that an object does not have.
    #[error("the DICOM image cannot be shown as asked: {what}\nhint: {hint}")]
    View {
        /// What was asked for, and what there is.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// Against the rules of its format.
    #[error("the {format} file is damaged: {what}\nhint: copy or export it again")]
    Damaged {
        /// The format.
        format: Format,
        /// The decoder's words.
        what: String,
    },
}

impl DecodeError {
    /// Sorts the errors of the decoders into ours. `exhausted`: the decoder asked for more than there was.
    pub(super) fn from_decoder(format: Format, error: &image::ImageError, exhausted: bool) -> Self {
        let what = one_line(&error.to_string());
        match error {
            image::ImageError::Unsupported(_) => Self::Unsupported { format, what },
            _ if exhausted => Self::Truncated { format },
            _ => Self::Damaged { format, what },
        }
    }

    /// A decoder's panic, which is our word for a file that broke it.
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

//! Errors of published encoders.

use crate::config::ConfigError;

/// Unsupported or invalid configuration, with file and field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// A required file is missing.
    #[error("`{file}` is missing\nhint: download the published file into the folder")]
    MissingFile {
        /// Name of the file.
        file: &'static str,
    },
    /// A missing field or an unsupported value.
    #[error(
        "{file}: `{field}` {problem}\n\
         hint: use a supported architecture with its published settings"
    )]
    InvalidField {
        /// Name of the file.
        file: &'static str,
        /// Path of the field: the names of the enclosing objects and its own, joined with dots.
        field: String,
        /// Predicate of the message: the found and the expected value.
        problem: String,
    },
    /// The image processor's output size differs from the network's input size.
    #[error(
        "the image processor yields {}, expected {image_size} x {image_size} pixels as in the \
         network's configuration\n\
         hint: check that both files come from the same repository",
        describe_size(*output_size)
    )]
    SizeMismatch {
        /// Output height and width of the processor; `None` if they depend on the image.
        output_size: Option<(usize, usize)>,
        /// Input side of the network, in pixels.
        image_size: usize,
    },
    /// A number of the image preprocessing is out of range.
    #[error("{problem}")]
    Processor {
        /// Message with the field, the value and the range.
        problem: String,
    },
    /// Inconsistent sizes.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Formats an output size for messages, width first.
fn describe_size(size: Option<(usize, usize)>) -> String {
    match size {
        Some((height, width)) => format!("{width} x {height} pixels"),
        None => "images of any aspect ratio".to_owned(),
    }
}

/// Tensors that do not match the configuration. Names are those in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// No tensor has the name of a patch embedding.
    #[error(
        "no tensor name ends in `{suffix}`\n\
         hint: check that the file contains a vision encoder in the layout of its configuration"
    )]
    NoEncoder {
        /// Suffix of the name of the patch embedding in this layout.
        suffix: &'static str,
    },
    /// Several vision encoders in one file.
    #[error(
        "`{first}` and `{second}` are both patch embeddings\n\
         hint: use a file with one vision encoder"
    )]
    SeveralEncoders {
        /// Name of a patch embedding.
        first: String,
        /// Name of another patch embedding.
        second: String,
    },
    /// A tensor that the configuration requires is missing.
    #[error(
        "tensor `{name}` is missing\n\
         hint: check that weights and configuration come from the same repository"
    )]
    MissingTensor {
        /// Name of the tensor in the file.
        name: String,
    },
    /// A tensor that the configuration does not use.
    #[error(
        "tensor `{name}` is unexpected for this configuration\n\
         hint: check that weights and configuration come from the same repository"
    )]
    UnexpectedTensor {
        /// Name of the tensor in the file.
        name: String,
    },
    /// A tensor of an unexpected shape.
    #[error(
        "tensor `{name}` has shape {found:?}, expected {expected:?}\n\
         hint: check that weights and configuration come from the same repository"
    )]
    ShapeMismatch {
        /// Name of the tensor in the file.
        name: String,
        /// Shape according to the configuration.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// Error of candle while reshaping a tensor.
    #[error("tensor `{name}`: {problem}")]
    Candle {
        /// Name of the tensor in the file.
        name: String,
        /// Message of candle.
        problem: String,
    },
}

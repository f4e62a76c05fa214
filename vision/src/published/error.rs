//! Errors of published encoders.

use crate::config::ConfigError;

/// Unsupported or invalid configuration, with file and field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// A required file is missing.
    #[error("`{file}` is missing\nhint: download the published file into the folder")]
    Missing {
        /// Its name.
        file: &'static str,
    },
    /// A missing field or an unsupported value.
    #[error(
        "{file}: `{field}` {what}\nhint: use a supported architecture with its published settings"
    )]
    Field {
        /// The file's name.
        file: &'static str,
        /// The field, with the names of the objects around it.
        field: String,
        /// What is wrong: expected and got.
        what: String,
    },
    /// The image processor's output size differs from the network's input size.
    #[error(
        "the image processor yields {}, expected {side} x {side} pixels as the network's configuration says\n\
         hint: check that both files come from the same repository",
        describe(*size)
    )]
    Sizes {
        /// Height and width of what the processor yields, where they are fixed.
        size: Option<(usize, usize)>,
        /// The network's `image_size`.
        side: usize,
    },
    /// Inconsistent sizes.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn describe(size: Option<(usize, usize)>) -> String {
    match size {
        Some((height, width)) => format!("{width} x {height} pixels"),
        None => "images of any proportion".to_owned(),
    }
}

/// Tensors that do not fit the configuration. Names are those in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// No tensor has the name of a patch embedding.
    #[error(
        "no tensor ends in `{expected}`\nhint: check that the file contains a vision encoder in the layout of its configuration"
    )]
    NoEncoder {
        /// The end of the name of the tensor that every encoder of the layout has.
        expected: &'static str,
    },
    /// Several towers in one file.
    #[error(
        "`{first}` and `{second}` are both patch embeddings\nhint: expected one vision encoder"
    )]
    Several {
        /// One of them.
        first: String,
        /// Another one.
        second: String,
    },
    /// A tensor that the configuration requires is missing.
    #[error(
        "tensor `{name}` is missing\nhint: check that weights and configuration come from the same repository"
    )]
    MissingTensor {
        /// Its name in the file.
        name: String,
    },
    /// A tensor that the configuration does not use.
    #[error(
        "tensor `{name}` is unexpected for this configuration\n\
         hint: check that weights and configuration come from the same repository"
    )]
    Surplus {
        /// Its name in the file.
        name: String,
    },
    /// A tensor of another shape.
    #[error(
        "tensor `{name}` has shape {got:?}, expected {expected:?}\n\
         hint: check that weights and configuration come from the same repository"
    )]
    Shape {
        /// Its name in the file.
        name: String,
        /// The shape by the configuration.
        expected: Vec<usize>,
        /// The shape in the file.
        got: Vec<usize>,
    },
    /// candle could not make the tensor.
    #[error("tensor `{name}`: {what}")]
    Tensor {
        /// Its name in the file.
        name: String,
        /// Message of candle.
        what: String,
    },
}

//! Why a published encoder cannot be used.

use crate::config::ConfigError;

/// A configuration that is not understood, by file and field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// A file that is needed is not there.
    #[error(
        "`{file}` is missing\nhint: the folder must hold the encoder's files as they were published"
    )]
    Missing {
        /// Its name.
        file: &'static str,
    },
    /// A field that is missing or has a value that is not known here.
    #[error(
        "{file}: `{field}` {what}\nhint: only the architectures that `acem3` names are supported, with their published settings"
    )]
    Field {
        /// The file's name.
        file: &'static str,
        /// The field, with the names of the objects around it.
        field: String,
        /// What is wrong: expected and got.
        what: String,
    },
    /// The processor's images are not those that the network takes.
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
    /// Sizes that describe no network.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn describe(size: Option<(usize, usize)>) -> String {
    match size {
        Some((height, width)) => format!("{width} x {height} pixels"),
        None => "images of any proportion".to_owned(),
    }
}

/// Tensors that are not those of the configuration. Names are those in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// No tensor has the name of a patch embedding.
    #[error(
        "no tensor ends in `{expected}`\nhint: the file holds no vision encoder of the layout its configuration names"
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
    /// A tensor that the configuration asks for is not there.
    #[error(
        "tensor `{name}` is missing\nhint: check that weights and configuration come from the same repository"
    )]
    MissingTensor {
        /// Its name in the file.
        name: String,
    },
    /// A tensor that the configuration does not ask for.
    #[error(
        "tensor `{name}` is of no use to an encoder with this configuration\n\
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
        /// What candle says.
        what: String,
    },
}

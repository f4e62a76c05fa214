//! The sizes in a preprocessor's settings, in the forms in which files on the hub write them.

use serde::{Deserialize, Serialize};

/// The size that an image is scaled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "size: expected {\"shortest_edge\": n}, {\"height\": n, \"width\": n} or n"
)]
pub enum Size {
    /// The shorter edge gets this length, the other keeps the proportion.
    ShortestEdge {
        /// Pixels.
        shortest_edge: usize,
    },
    /// Both edges, whatever the proportion.
    Exact {
        /// Pixels.
        height: usize,
        /// Pixels.
        width: usize,
    },
    /// The shorter edge, as older files write it.
    Number(usize),
}

/// The size of the middle part that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "crop_size: expected {\"height\": n, \"width\": n} or n"
)]
pub enum CropSize {
    /// Both edges.
    Exact {
        /// Pixels.
        height: usize,
        /// Pixels.
        width: usize,
    },
    /// A square, as older files write it.
    Number(usize),
}

/// What happens to an oblong image before it is scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pad {
    /// Nothing.
    #[default]
    None,
    /// It is put into the middle of a square in the mean colour, so that nothing is cut off or distorted
    /// (`expand2square` of `LLaVA`).
    Square,
}

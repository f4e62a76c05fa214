//! Sizes in preprocessor settings, in all formats that files on the hub use.

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

/// Padding of an image before it is scaled.
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

/// Position of the centre crop if the margins cannot be equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centre {
    /// The smaller margin is at the left and the top (`transformers`).
    #[default]
    Down,
    /// Half the margin is rounded to the even number of pixels (`torchvision`, as in `open_clip`).
    HalfToEven,
}

impl Centre {
    /// Whether this is the rule of `transformers`, which a file need not state.
    pub fn is_default(&self) -> bool {
        *self == Self::Down
    }

    /// The first of two margins that are `margins` in all.
    pub(super) fn first(self, margins: usize) -> usize {
        let half = margins / 2;
        match self {
            Self::Down => half,
            Self::HalfToEven => half + (margins % 2) * (half % 2),
        }
    }
}

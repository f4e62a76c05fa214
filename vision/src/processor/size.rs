//! Sizes, padding and crop position in preprocessor settings, in all formats of files on the hub.

use serde::{Deserialize, Serialize};

/// Size to which an image is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "size: expected {\"shortest_edge\": n}, {\"height\": n, \"width\": n} or n"
)]
pub enum ResizeSize {
    /// Length of the shorter edge. The aspect ratio does not change.
    ShortestEdge {
        /// Length in pixels.
        shortest_edge: usize,
    },
    /// Height and width. The aspect ratio may change.
    Exact {
        /// Height in pixels.
        height: usize,
        /// Width in pixels.
        width: usize,
    },
    /// Length of the shorter edge in pixels, as older files write it.
    Number(usize),
}

/// Size of the centre crop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "crop_size: expected {\"height\": n, \"width\": n} or n")]
pub enum CropSize {
    /// Height and width.
    Exact {
        /// Height in pixels.
        height: usize,
        /// Width in pixels.
        width: usize,
    },
    /// Side of a square in pixels, as older files write it.
    Number(usize),
}

/// Padding of an image before it is resized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pad {
    /// No padding.
    #[default]
    None,
    /// Padding to a square with the mean colour, so that nothing is cropped or distorted
    /// (`expand2square` of `LLaVA`).
    Square,
}

/// Rounding of the margins of the centre crop if they cannot be equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CropRounding {
    /// The smaller margin is at the left and the top (`transformers`).
    #[default]
    Down,
    /// Half of the total margin is rounded to the nearest even number of pixels (`torchvision`,
    /// used by `open_clip`).
    HalfToEven,
}

impl CropRounding {
    /// Returns true for the rule of `transformers`, which files omit.
    pub fn is_default(&self) -> bool {
        *self == Self::Down
    }

    /// Returns the left or top margin. `total` is the sum of both margins in pixels.
    pub(super) fn leading_margin(self, total: usize) -> usize {
        let half = total / 2;
        match self {
            Self::Down => half,
            Self::HalfToEven => half + (total % 2) * (half % 2),
        }
    }
}

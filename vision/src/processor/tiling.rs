//! Methods of splitting a large image into several encoder inputs.

use serde::{Deserialize, Serialize};

use super::any_res_max::AnyResMax;

/// Method by which one image becomes several encoder inputs, with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tiling {
    /// `LLaVA-NeXT`: tiles of the candidate resolution, height and width in pixels, that fits the
    /// image best. See [`AnyRes`](super::AnyRes).
    Pinpoints(Vec<[usize; 2]>),
    /// `LLaVA-OneVision`: the same tiles, with a limit on their image tokens.
    AnyResMax(AnyResMax),
    /// `InternVL`: a grid of tiles with an aspect ratio close to that of the image. See
    /// [`DynamicTiles`](super::DynamicTiles).
    Dynamic {
        /// Minimum number of tiles.
        min_tiles: usize,
        /// Maximum number of tiles.
        max_tiles: usize,
        /// True if the complete image, downscaled, follows two or more tiles.
        thumbnail: bool,
    },
}

impl Tiling {
    /// Default of `InternVL`'s image processor in `transformers`.
    pub const INTERN_VL: Self = Self::Dynamic { min_tiles: 1, max_tiles: 12, thumbnail: true };
}

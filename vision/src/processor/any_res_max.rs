//! Tiling of `LLaVA-OneVision`: the tiles of `LLaVA-NeXT`, with a limit on the image tokens of all
//! tiles together.

use serde::{Deserialize, Serialize};

/// Settings of the method `anyres_max_N`. The tiles are those of [`AnyRes`](super::AnyRes); the
/// image tokens of the tiles are shrunk if they are more than those of `max_tiles` tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnyResMax {
    /// Available resolutions.
    pub resolutions: Resolutions,
    /// Number of tiles whose image tokens are not shrunk, the `N` of `anyres_max_N`.
    pub max_tiles: usize,
    /// Rounding of the region without padding.
    pub rounding: RegionRounding,
}

/// Available resolutions, each as height and width.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolutions {
    /// In pixels.
    Pixels(Vec<[usize; 2]>),
    /// In tiles, as LLaVA's code writes them: `(1x1),...,(6x6)`.
    Tiles(Vec<[usize; 2]>),
}

impl Resolutions {
    /// Returns height and width of each resolution in pixels. `side`: the side of a tile.
    pub fn in_pixels(&self, side: usize) -> Vec<[usize; 2]> {
        match self {
            Self::Pixels(sizes) => sizes.clone(),
            Self::Tiles(sizes) => {
                let pixels = |[rows, columns]: &[usize; 2]| {
                    [rows.saturating_mul(side), columns.saturating_mul(side)]
                };
                sizes.iter().map(pixels).collect()
            }
        }
    }
}

/// Rounding of the size of an image in a grid of tiles, measured in image tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionRounding {
    /// To seven decimals, then down (`transformers`): an exact size does not lose a token.
    Decimals,
    /// Down (LLaVA's code).
    Down,
}

impl RegionRounding {
    /// Rounds a length that is not negative.
    pub(super) fn round(self, length: f64) -> usize {
        match self {
            Self::Decimals => ((length * 1e7).round_ties_even() / 1e7) as usize,
            Self::Down => length as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolutions_in_tiles_are_multiples_of_the_side() {
        let sizes = vec![[1, 2], [3, 1]];
        assert_eq!(Resolutions::Tiles(sizes.clone()).in_pixels(384), [[384, 768], [1152, 384]]);
        assert_eq!(Resolutions::Pixels(sizes.clone()).in_pixels(384), sizes);
    }

    #[test]
    fn only_one_rounding_loses_a_token_to_an_inexact_product() {
        let inexact = 49.0 * (27.0 / 49.0);
        assert!(inexact < 27.0);
        assert_eq!(RegionRounding::Decimals.round(inexact), 27);
        assert_eq!(RegionRounding::Down.round(inexact), 26);
        assert_eq!(RegionRounding::Decimals.round(26.9), 26);
    }
}

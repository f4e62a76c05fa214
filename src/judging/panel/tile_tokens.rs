//! Number of image tokens of the tiles of an image.

use acem3_projector::limited_size;
use acem3_vision::{Tiling, VisionConfig};

/// Returns the largest number of tokens of an image beyond those of its first encoder input, which has
/// `input_tokens`.
pub(super) fn max_tile_tokens(
    tiling: &Tiling,
    vision: &VisionConfig,
    input_tokens: usize,
) -> Option<usize> {
    let side = vision.grid_side();
    let patches = |[height, width]: &[usize; 2]| {
        let per_side = |length: usize| length / vision.image_size.max(1) * side;
        (per_side(*height), per_side(*width))
    };
    // One token at the end of each row.
    let row_tokens = |(rows, columns): (usize, usize)| rows * (columns + 1);
    match tiling {
        Tiling::Dynamic { max_tiles, thumbnail, .. } => {
            let has_whole = *thumbnail && *max_tiles > 1;
            Some((max_tiles.saturating_sub(1) + usize::from(has_whole)) * input_tokens)
        }
        Tiling::Pinpoints(pinpoints) => {
            pinpoints.iter().map(|pinpoint| row_tokens(patches(pinpoint))).max()
        }
        Tiling::AnyResMax(settings) => {
            let pinpoints = settings.resolutions.in_pixels(vision.image_size);
            let regions = pinpoints.iter().flat_map(|pinpoint| {
                // An image may fill less than the tiles. A smaller region may stay just below the
                // limit where a larger one shrinks.
                let (rows, columns) = patches(pinpoint);
                let narrower = (1..=columns).map(move |columns| (rows, columns));
                narrower.chain((1..=rows).map(move |rows| (rows, columns)))
            });
            let limited = regions.map(|region| limited_size(region, settings.max_tiles, side));
            limited.map(row_tokens).max()
        }
    }
}

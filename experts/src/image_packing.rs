//! Arrangement of the image tokens of an image in a prompt.

use acem3_projector::{TileLayout, limited_size, pack_limited_tiles, pack_tiles};
use acem3_vision::{RegionRounding, TileGrid, Tiling};
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

/// Name of the embedding at the end of each row of image tokens.
const NEWLINE: &str = "image_newline";

/// Sizes that determine the image tokens of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePackingConfig {
    /// Method by which an image becomes several encoder inputs; `None` for one input.
    pub tiling: Option<Tiling>,
    /// Side of the grid of patch features of an encoder input.
    pub grid_side: usize,
    /// Number of image tokens of an encoder input.
    pub input_tokens: usize,
    /// Size of an image token.
    pub hidden_size: usize,
}

/// Arranges the image tokens of the encoder inputs of one image.
#[derive(Clone, Debug)]
pub struct ImagePacking {
    grid_side: usize,
    rows: Option<TokenRows>,
}

/// Arrangement in rows: the tokens of the whole image, then those of the tiles, without the tokens
/// of padding.
#[derive(Clone, Debug)]
struct TokenRows {
    /// Embedding at the end of each row, `(c)`.
    newline: Tensor,
    /// Number of tiles whose tokens a larger number of tokens shrinks to (`LLaVA-OneVision`).
    max_tiles: Option<usize>,
    rounding: RegionRounding,
}

impl ImagePacking {
    /// Loads the embedding at the end of rows, if the method of tiling has one. `vb` is the scope
    /// `model`.
    pub fn load(vb: &VarBuilder, config: &ImagePackingConfig) -> Result<Self> {
        let rows = config.tiling.as_ref().and_then(row_settings);
        let load_rows = |(max_tiles, rounding)| -> Result<TokenRows> {
            let newline = vb.get(config.hidden_size, NEWLINE)?;
            Ok(TokenRows { newline, max_tiles, rounding })
        };
        Ok(Self { grid_side: config.grid_side, rows: rows.map(load_rows).transpose()? })
    }

    /// Arranges the tokens of all encoder inputs.
    ///
    /// # Shapes
    /// `tokens` `(n, p, c)` → `(t, c)`.
    pub fn forward(&self, tokens: &Tensor, grid: &TileGrid) -> Result<Tensor> {
        let Some(TokenRows { newline, max_tiles, rounding }) = &self.rows else {
            return tokens.flatten_to(1);
        };
        let (token_rows, token_columns) = grid.content_region(self.grid_side, *rounding);
        let layout =
            TileLayout { rows: grid.rows, columns: grid.columns, token_rows, token_columns };
        match max_tiles {
            Some(max_tiles) => pack_limited_tiles(tokens, &layout, newline, *max_tiles),
            None => pack_tiles(tokens, &layout, newline),
        }
    }

    /// Returns the embedding at the end of rows, `(c)`; `None` if there are no rows.
    pub fn newline(&self) -> Option<&Tensor> {
        self.rows.as_ref().map(|rows| &rows.newline)
    }
}

/// Returns the limit on tiles and the rounding of a method of tiling that arranges tokens in rows.
fn row_settings(tiling: &Tiling) -> Option<(Option<usize>, RegionRounding)> {
    match tiling {
        Tiling::Pinpoints(_) => Some((None, RegionRounding::Decimals)),
        Tiling::AnyResMax(settings) => Some((Some(settings.max_tiles), settings.rounding)),
        Tiling::Dynamic { .. } => None,
    }
}

impl ImagePackingConfig {
    /// Returns the number of image tokens of an image with this arrangement of encoder inputs.
    pub fn token_count(&self, grid: &TileGrid) -> usize {
        let Some((max_tiles, rounding)) = self.tiling.as_ref().and_then(row_settings) else {
            return grid.inputs * self.input_tokens;
        };
        let (rows, columns) = grid.content_region(self.grid_side, rounding);
        let size = (rows.len(), columns.len());
        let limited = max_tiles.map(|max| limited_size(size, max, self.grid_side));
        let (rows, columns) = limited.unwrap_or(size);
        self.input_tokens + rows * (columns + 1)
    }
}

//! Image tokens of a large image: the downscaled whole, then its tiles row by row
//! (`pack_image_features` in transformers' `modeling_llava_next.py`).

use std::ops::Range;

use candle::{Result, Tensor, bail};

use crate::shrink::{limited_size, resize_grid};

/// Arrangement of the tiles of an image, and the range of their tokens that is not padding.
#[derive(Clone, Debug)]
pub struct TileLayout {
    /// Rows of tiles.
    pub rows: usize,
    /// Columns of tiles.
    pub columns: usize,
    /// Token rows without padding, counted over all tiles.
    pub token_rows: Range<usize>,
    /// Token columns without padding, counted over all tiles.
    pub token_columns: Range<usize>,
}

/// Packs the tokens of an image and its tiles into one sequence: first the tokens of the whole
/// image, then the unpadded tokens of all tiles, row by row, each row followed by the token
/// `newline`.
///
/// # Shapes
/// `tokens` (1 + rows · columns, g², c) with the whole image first, `newline` (c) → (g² + h · (w +
/// 1), c), where h and w are the numbers of unpadded token rows and columns.
pub fn pack_tiles(tokens: &Tensor, layout: &TileLayout, newline: &Tensor) -> Result<Tensor> {
    let grid = content_grid(tokens, layout)?;
    append_rows(&tokens.get(0)?, &grid, newline)
}

/// Packs the tokens of an image and its tiles like [`pack_tiles`], and shrinks the grid of the tiles
/// if it has more tokens than [`limited_size`](super::limited_size) allows for `max_tiles`
/// (`pack_image_features` in transformers' `modeling_llava_onevision.py`).
///
/// # Shapes
/// Like [`pack_tiles`], where h and w are the rows and columns after shrinking.
pub fn pack_limited_tiles(
    tokens: &Tensor,
    layout: &TileLayout,
    newline: &Tensor,
    max_tiles: usize,
) -> Result<Tensor> {
    let mut grid = content_grid(tokens, layout)?;
    let (rows, columns, _) = grid.dims3()?;
    let size = limited_size((rows, columns), max_tiles, tokens.dim(1)?.isqrt());
    if size != (rows, columns) {
        grid = resize_grid(&grid, size)?;
    }
    append_rows(&tokens.get(0)?, &grid, newline)
}

/// Returns the unpadded tokens of all tiles, (h, w, c).
fn content_grid(tokens: &Tensor, layout: &TileLayout) -> Result<Tensor> {
    let TileLayout { rows, columns, .. } = *layout;
    let (token_rows, token_columns) = (&layout.token_rows, &layout.token_columns);
    let (n, p, c) = tokens.dims3()?;
    let g = p.isqrt();
    if g * g != p || n != 1 + rows * columns {
        bail!("{n} x {p} image tokens do not match one image and {rows} x {columns} square tiles");
    }
    if token_rows.end > rows * g || token_columns.end > columns * g {
        bail!(
            "token rows {token_rows:?} and columns {token_columns:?} exceed {rows} x {columns} \
             tiles of {g} x {g} tokens"
        );
    }
    let tiles = tokens.narrow(0, 1, rows * columns)?;
    let tiles = tiles.reshape((rows, columns, g, g, c))?;
    let tiles = tiles.permute((0, 2, 1, 3, 4))?.contiguous()?;
    let tiles = tiles.reshape((rows * g, columns * g, c))?;
    let tiles = tiles.narrow(0, token_rows.start, token_rows.len())?;
    tiles.narrow(1, token_columns.start, token_columns.len())?.contiguous()
}

/// Appends the rows of a grid to the tokens of the whole image, each with a newline at its end.
fn append_rows(whole: &Tensor, grid: &Tensor, newline: &Tensor) -> Result<Tensor> {
    let (rows, _, c) = grid.dims3()?;
    if rows == 0 {
        return Ok(whole.clone());
    }
    let newlines = newline.reshape((1, 1, c))?.expand((rows, 1, c))?;
    let lines = Tensor::cat(&[grid, &newlines], 1)?;
    Tensor::cat(&[whole, &lines.flatten_to(1)?], 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    #[test]
    fn token_rows_of_tiles_end_with_newlines() -> Result<()> {
        // The whole image and one row of two tiles with 2 x 2 tokens each, numbered 0 to 11.
        let tokens = Tensor::arange(0f32, 12.0, &Device::Cpu)?.reshape((3, 4, 1))?;
        let newline = Tensor::new(&[-1f32], &Device::Cpu)?;
        let layout = |rows, token_rows, token_columns| TileLayout {
            rows,
            columns: 2,
            token_rows,
            token_columns,
        };
        let packed = |token_rows, token_columns| {
            let packed = pack_tiles(&tokens, &layout(1, token_rows, token_columns), &newline)?;
            packed.flatten_all()?.to_vec1::<f32>()
        };
        let all = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 9.0, -1.0, 6.0, 7.0, 10.0, 11.0, -1.0];
        assert_eq!(packed(0..2, 0..4)?, all);
        assert_eq!(packed(1..2, 1..3)?, [0.0, 1.0, 2.0, 3.0, 7.0, 10.0, -1.0]);
        assert_eq!(packed(1..1, 0..4)?, [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(packed(0..2, 1..1)?, [0.0, 1.0, 2.0, 3.0, -1.0, -1.0]);
        assert!(packed(0..3, 0..4).is_err());
        assert!(pack_tiles(&tokens, &layout(2, 0..2, 0..2), &newline).is_err());
        Ok(())
    }

    #[test]
    fn narrow_images_shrink_too() -> Result<()> {
        // Two rows of one tile. The image has padding on its left and on its right.
        let tokens = Tensor::arange(0f32, 48.0, &Device::Cpu)?.reshape((3, 16, 1))?;
        let newline = Tensor::new(&[-1f32], &Device::Cpu)?;
        let layout = TileLayout { rows: 2, columns: 1, token_rows: 0..8, token_columns: 1..3 };
        let packed = pack_limited_tiles(&tokens, &layout, &newline, 1)?;
        assert_eq!(packed.dims()[0], 16 + 8 * 3, "16 tokens are not more than a tile");
        let wide = TileLayout { token_columns: 0..3, ..layout };
        let packed = pack_limited_tiles(&tokens, &wide, &newline, 1)?;
        // 8 x 3 tokens divided by the square root of 24 / 16.
        assert_eq!(packed.dims()[0], 16 + 6 * (2 + 1));
        Ok(())
    }

    #[test]
    fn tokens_of_many_tiles_shrink_before_newlines() -> Result<()> {
        // The whole image and four tiles with 2 x 2 tokens each; the limit is one tile.
        let tokens = Tensor::ones((5, 4, 1), candle::DType::F32, &Device::Cpu)?;
        let newline = Tensor::new(&[-1f32], &Device::Cpu)?;
        let layout = TileLayout { rows: 2, columns: 2, token_rows: 0..4, token_columns: 0..4 };
        let packed = |max_tiles| {
            let packed = pack_limited_tiles(&tokens, &layout, &newline, max_tiles)?;
            packed.flatten_all()?.to_vec1::<f32>()
        };
        assert_eq!(packed(1)?, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0]);
        assert_eq!(packed(4)?.len(), 4 + 4 * 5);
        Ok(())
    }
}

//! Image tokens of a large image: the downscaled whole, then its tiles row by row
//! (`pack_image_features` in transformers' `modeling_llava_next.py`).

use std::ops::Range;

use candle::{Result, Tensor, bail};

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
    let whole = tokens.get(0)?;
    if token_rows.is_empty() {
        return Ok(whole);
    }
    let tiles = tokens.narrow(0, 1, rows * columns)?;
    let tiles = tiles.reshape((rows, columns, g, g, c))?;
    let tiles = tiles.permute((0, 2, 1, 3, 4))?.contiguous()?;
    let tiles = tiles.reshape((rows * g, columns * g, c))?;
    let tiles = tiles.narrow(0, token_rows.start, token_rows.len())?.narrow(
        1,
        token_columns.start,
        token_columns.len(),
    )?;
    let newlines = newline.reshape((1, 1, c))?;
    let newlines = newlines.expand((token_rows.len(), 1, c))?;
    let lines = Tensor::cat(&[&tiles, &newlines], 1)?;
    Tensor::cat(&[&whole, &lines.flatten_to(1)?], 0)
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
        assert!(packed(0..3, 0..4).is_err());
        assert!(pack_tiles(&tokens, &layout(2, 0..2, 0..2), &newline).is_err());
        Ok(())
    }
}

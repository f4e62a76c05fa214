//! Image tokens of a large image: the whole in small, then its tiles laid together row by row
//! (`pack_image_features` in transformers' `modeling_llava_next.py`).

use std::ops::Range;

use candle::{Result, Tensor, bail};

/// Lays the tokens of tiles together: first those of the whole image, then, row by row over all tiles, those
/// that are kept, each row ending with the token `newline`.
///
/// `grid`: rows and columns of tiles. `kept`: which rows and columns of tokens of all tiles together show the
/// image and not what it was padded with.
///
/// # Shapes
/// `(1 + rows · columns, g², c)`, the whole image first, and `(c)` to `(g² + h · (w + 1), c)`, with `h` rows
/// and `w` columns kept.
pub fn pack(
    tokens: &Tensor,
    (rows, columns): (usize, usize),
    (down, across): (Range<usize>, Range<usize>),
    newline: &Tensor,
) -> Result<Tensor> {
    let (n, p, c) = tokens.dims3()?;
    let g = p.isqrt();
    if g * g != p || n != 1 + rows * columns {
        bail!("{n} x {p} tokens are not those of an image and {rows} x {columns} square tiles");
    }
    if down.end > rows * g || across.end > columns * g {
        bail!("rows {down:?} and columns {across:?} of {rows} x {columns} tiles of {g} x {g}");
    }
    let whole = tokens.get(0)?;
    if down.is_empty() {
        return Ok(whole);
    }
    let tiles = tokens.narrow(0, 1, rows * columns)?;
    let tiles = tiles.reshape((rows, columns, g, g, c))?;
    let tiles = tiles.permute((0, 2, 1, 3, 4))?.contiguous()?;
    let tiles = tiles.reshape((rows * g, columns * g, c))?;
    let tiles = tiles
        .narrow(0, down.start, down.len())?
        .narrow(1, across.start, across.len())?;
    let ends = newline.reshape((1, 1, c))?.expand((down.len(), 1, c))?;
    let lines = Tensor::cat(&[&tiles, &ends], 1)?;
    Tensor::cat(&[&whole, &lines.flatten_to(1)?], 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    #[test]
    fn tiles_are_laid_in_rows_that_end() -> Result<()> {
        // A whole and one row of two tiles, 2 x 2 tokens each: 0 to 11 from left to right, tile by tile.
        let tokens = Tensor::arange(0f32, 12.0, &Device::Cpu)?.reshape((3, 4, 1))?;
        let newline = Tensor::new(&[-1f32], &Device::Cpu)?;
        let packed = |down, across| {
            let packed = pack(&tokens, (1, 2), (down, across), &newline)?;
            packed.flatten_all()?.to_vec1::<f32>()
        };
        let all = [
            0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 9.0, -1.0, 6.0, 7.0, 10.0, 11.0, -1.0,
        ];
        assert_eq!(packed(0..2, 0..4)?, all);
        assert_eq!(packed(1..2, 1..3)?, [0.0, 1.0, 2.0, 3.0, 7.0, 10.0, -1.0]);
        assert_eq!(packed(1..1, 0..4)?, [0.0, 1.0, 2.0, 3.0]);
        assert!(packed(0..3, 0..4).is_err());
        assert!(pack(&tokens, (2, 2), (0..2, 0..2), &newline).is_err());
        Ok(())
    }
}

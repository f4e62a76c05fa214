//! Bilinear shrinking of a grid of image tokens (`interpolate` of `PyTorch` in the mode `bilinear`,
//! without antialiasing and with unaligned corners).

use candle::{DType, Device, Result, Tensor, bail};

/// Returns rows and columns of a grid of image tokens after the limit of `LLaVA-OneVision`
/// (`pack_image_features` in transformers' `modeling_llava_onevision.py`): a grid with clearly more
/// tokens than `max_tiles` tiles of `side` × `side` tokens shrinks to about that number.
pub fn limited_size(
    (rows, columns): (usize, usize),
    max_tiles: usize,
    side: usize,
) -> (usize, usize) {
    let limit = max_tiles as f64 * (side * side) as f64;
    let ratio = (rows as f64 * columns as f64 / limit).sqrt();
    if ratio > 1.1 {
        let shrunk = |length: usize| floor_division(length as f64, ratio).max(1);
        (shrunk(rows), shrunk(columns))
    } else {
        (rows, columns)
    }
}

/// Divides and rounds down as Python does: the remainder is exact, so a quotient just below an
/// integer is not rounded up to it.
fn floor_division(length: f64, divisor: f64) -> usize {
    ((length - length % divisor) / divisor).round() as usize
}

/// Resizes a grid of image tokens by bilinear interpolation.
///
/// # Shapes
/// `grid` (rows, columns, c) → (`size.0`, `size.1`, c).
///
/// # Errors
/// If the grid or the size is empty.
pub(super) fn resize_grid(grid: &Tensor, size: (usize, usize)) -> Result<Tensor> {
    let (rows, columns, _) = grid.dims3()?;
    if rows * columns * size.0 * size.1 == 0 {
        bail!("cannot resize {rows} x {columns} image tokens to {} x {}", size.0, size.1);
    }
    let tall = interpolate(&grid.to_dtype(DType::F32)?, 0, size.0)?;
    interpolate(&tall, 1, size.1)?.to_dtype(grid.dtype())
}

/// Interpolates linearly between neighbours in one dimension.
fn interpolate(grid: &Tensor, dim: usize, length: usize) -> Result<Tensor> {
    let (lower, upper, weights) = neighbours(grid.dim(dim)?, length);
    let device = grid.device();
    let shape = if dim == 0 { (length, 1, 1) } else { (1, length, 1) };
    let select = |indices: Vec<u32>| grid.index_select(&to_indices(indices, device)?, dim);
    let (lower, upper) = (select(lower)?, select(upper)?);
    let weights = Tensor::from_vec(weights, shape, device)?;
    let rest = weights.affine(-1.0, 1.0)?;
    lower.broadcast_mul(&rest)? + upper.broadcast_mul(&weights)?
}

fn to_indices(indices: Vec<u32>, device: &Device) -> Result<Tensor> {
    let count = indices.len();
    Tensor::from_vec(indices, count, device)
}

/// Returns for each output position the input positions before and after it, and the weight of the
/// one after it. In f32, as `PyTorch` computes.
fn neighbours(input: usize, output: usize) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let scale = input as f32 / output as f32;
    let last = input.saturating_sub(1);
    let (mut lower, mut upper, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for position in 0..output {
        let center = (scale * (position as f32 + 0.5) - 0.5).max(0.0);
        let before = (center as usize).min(last);
        lower.push(before as u32);
        upper.push((before + 1).min(last) as u32);
        weights.push((center - before as f32).clamp(0.0, 1.0));
    }
    (lower, upper, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_up_to_the_limit_keep_their_size() {
        // 9 tiles of 27 x 27 tokens have 81 x 81 tokens.
        for size in [(27, 27), (81, 81), (85, 92)] {
            assert_eq!(limited_size(size, 9, 27), size);
        }
        assert_eq!(limited_size((162, 162), 9, 27), (81, 81));
        assert_eq!(limited_size((27, 162), 1, 27), (11, 66));
        assert_eq!(limited_size((1, 1000), 1, 2), (1, 63));
    }

    #[test]
    fn interpolation_matches_hand_calculation() -> Result<()> {
        let grid = Tensor::arange(0f32, 8.0, &Device::Cpu)?.reshape((2, 4, 1))?;
        // Each output token lies between four input tokens.
        let half = resize_grid(&grid, (1, 2))?.flatten_all()?.to_vec1::<f32>()?;
        assert_eq!(half, [2.5, 4.5]);
        let wide = resize_grid(&grid, (2, 3))?.flatten_all()?.to_vec1::<f32>()?;
        for (value, expected) in wide.iter().zip([1.0 / 6.0, 1.5, 17.0 / 6.0]) {
            assert!((value - expected).abs() < 1e-6, "{wide:?}");
        }
        assert!(resize_grid(&grid, (0, 2)).is_err());
        Ok(())
    }
}

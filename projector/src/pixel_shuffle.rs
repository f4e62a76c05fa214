//! Joins neighbouring patch features, so that an image has fewer tokens (`pixel_shuffle` in
//! transformers' `modeling_internvl.py`).

use candle::{Result, Tensor, bail};

/// Joins the features of each square of `factor` × `factor` patches, row by row, to one feature.
///
/// # Shapes
/// `(b, g², c)` to `(b, (g / factor)², factor² · c)`.
///
/// # Errors
/// The patches are no square grid, or `factor` does not divide its side.
pub fn pixel_shuffle(features: &Tensor, factor: usize) -> Result<Tensor> {
    let (b, p, c) = features.dims3()?;
    let g = p.isqrt();
    if g * g != p || factor == 0 || !g.is_multiple_of(factor) {
        bail!(
            "{p} patch features, expected a square grid whose side is a multiple of {factor}\n\
             hint: check image_size and patch_size of the vision tower"
        );
    }
    let n = g / factor;
    features.reshape(&[b, n, factor, n, factor, c][..])?.permute([0, 1, 3, 2, 4, 5])?.reshape((
        b,
        n * n,
        factor * factor * c,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    #[test]
    fn squares_of_patches_are_joined_row_by_row() -> Result<()> {
        // 4 x 4 patches with one channel, numbered row by row.
        let features = Tensor::arange(0f32, 16.0, &Device::Cpu)?.reshape((1, 16, 1))?;
        let joined = pixel_shuffle(&features, 2)?.squeeze(0)?.to_vec2::<f32>()?;
        let expected = [
            [0.0, 1.0, 4.0, 5.0],
            [2.0, 3.0, 6.0, 7.0],
            [8.0, 9.0, 12.0, 13.0],
            [10.0, 11.0, 14.0, 15.0],
        ];
        assert_eq!(joined, expected);
        for (patches, factor) in [(9, 2), (8, 2), (16, 0)] {
            let features = Tensor::zeros((1, patches, 1), candle::DType::F32, &Device::Cpu)?;
            let error = pixel_shuffle(&features, factor).unwrap_err().to_string();
            assert!(error.contains(&format!("{patches} patch features")), "{error}");
        }
        Ok(())
    }
}

//! `x Wᵀ`, computed so that a row's result does not depend on the rows beside it.

use candle::{Result, Tensor};

/// Rows that are multiplied at once when a step has few of them.
///
/// A matrix kernel may add up in another order when the number of rows changes, so that a verdict
/// would depend on the batch it was judged in. Tiles of one fixed height keep the order fixed.
const TILE: usize = 16;

/// The product of each row with the transposed weight, plus a bias.
///
/// # Shapes
/// `x`: `(n, c_in)`, `weight`: `(c_out, c_in)`, `bias`: `(c_out)`, result: `(n, c_out)`.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let weight = weight.t()?;
    let tracked = x.track_op() || weight.track_op();
    let y = if tracked || !x.device().is_cpu() {
        x.matmul(&weight)?
    } else {
        tiled(x, &weight)?
    };
    match bias {
        Some(bias) => y.broadcast_add(bias),
        None => Ok(y),
    }
}

fn tiled(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let n = x.dim(0)?;
    let padding = n.next_multiple_of(TILE) - n;
    let x = if padding == 0 {
        x.clone()
    } else {
        x.pad_with_zeros(0, 0, padding)?
    };
    let tiles: Vec<Tensor> = (0..x.dim(0)? / TILE)
        .map(|i| x.narrow(0, i * TILE, TILE)?.matmul(weight))
        .collect::<Result<_>>()?;
    let y = if tiles.len() == 1 {
        tiles[0].clone()
    } else {
        Tensor::cat(&tiles, 0)?
    };
    if padding == 0 {
        Ok(y)
    } else {
        y.narrow(0, 0, n)?.contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    #[test]
    fn a_row_alone_equals_the_same_row_in_company_to_the_bit() -> Result<()> {
        let x = Tensor::randn(0f32, 1.0, (37, 192), &Device::Cpu)?;
        let w = Tensor::randn(0f32, 1.0, (512, 192), &Device::Cpu)?;
        let all = linear(&x, &w, None)?.to_vec2::<f32>()?;
        for i in [0, 5, 16, 36] {
            let alone = linear(&x.narrow(0, i, 1)?, &w, None)?.to_vec2::<f32>()?;
            assert_eq!(alone[0], all[i]);
        }
        Ok(())
    }
}

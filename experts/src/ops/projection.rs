//! A matrix of a layer, with a product of two narrow ones beside it where it is being adapted.

use acem3_kernels::{Matrix, linear};
use candle::{Result, Tensor, bail};
use candle_nn::VarBuilder;

/// What follows a matrix's name in the names of its adapter: of `A` and `B` as peft has them
/// (`tuners/lora/layer.py`), and of `alpha`.
pub const ADAPTER: [&str; 3] = ["lora_A.weight", "lora_B.weight", "lora_alpha"];

/// A matrix of `(c_out, c_in)` and its adapter, if it has one.
#[derive(Clone, Debug)]
pub struct Projection {
    matrix: Matrix,
    adapter: Option<Adapter>,
}

/// A change of a matrix: `alpha / rank · B · A` (Hu et al., 2021, §4.1).
#[derive(Clone, Debug)]
struct Adapter {
    /// `A`, `(rank, c_in)`.
    down: Tensor,
    /// `B`, `(c_out, rank)`.
    up: Tensor,
    scale: f64,
}

impl Projection {
    /// The matrix of a name, and its adapter where the builder has one.
    pub fn load(vb: &VarBuilder, (rows, columns): (usize, usize), name: &str) -> Result<Self> {
        let matrix = Matrix::load(vb, (rows, columns), &format!("{name}.weight"))?;
        let [down, up, alpha] = ADAPTER.map(|ending| format!("{name}.{ending}"));
        if !vb.contains_tensor(&down) {
            let adapter = None;
            return Ok(Self { matrix, adapter });
        }
        let down = vb.get_unchecked(&down)?;
        let (rank, wide) = down.dims2()?;
        if wide != columns || rank == 0 {
            bail!("the adapter of `{name}` has rows of {wide} values, expected {columns}");
        }
        let alpha = vb.get((), &alpha)?.to_scalar::<f32>()?;
        let adapter = Some(Adapter {
            up: vb.get((rows, rank), &up)?,
            down,
            scale: f64::from(alpha) / rank as f64,
        });
        Ok(Self { matrix, adapter })
    }

    /// The product of each row of `x` with the transposed matrix, plus a bias.
    ///
    /// The change is never added to the matrix, so that only narrow products have a gradient.
    ///
    /// # Shapes
    /// `x`: `(n, c_in)`, `bias`: `(c_out)`, result: `(n, c_out)`.
    pub fn forward(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let y = self.matrix.linear(x, bias)?;
        match &self.adapter {
            Some(Adapter { down, up, scale }) => {
                let change = linear(&linear(x, down, None)?, up, None)?;
                y + (change * *scale)?
            }
            None => Ok(y),
        }
    }
}

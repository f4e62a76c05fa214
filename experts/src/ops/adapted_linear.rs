//! Linear layer with an optional LoRA adapter.

use acem3_kernels::{Matrix, linear};
use candle::{Result, Tensor, bail};
use candle_nn::VarBuilder;

/// Endings of the names of an adapter's tensors: matrices `A` and `B`, named as in peft
/// (`tuners/lora/layer.py`), and `alpha`.
pub const ADAPTER_SUFFIXES: [&str; 3] = ["lora_A.weight", "lora_B.weight", "lora_alpha"];

/// Names of the matrices of a decoder layer, which can have adapters.
pub const LAYER_MATRICES: [&str; 7] = [
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
];

/// Returns true for the name of a matrix of a decoder layer, such as `model.layers.0.mlp.up_proj`.
pub fn takes_adapter(matrix: &str) -> bool {
    let layer = matrix.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
    layer.is_some_and(|(_, matrix)| LAYER_MATRICES.contains(&matrix))
}

/// Returns true for the names of an adapter's tensors.
pub fn is_adapter(name: &str) -> bool {
    ADAPTER_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// A matrix `(c_out, c_in)` with an optional adapter.
#[derive(Clone, Debug)]
pub struct AdaptedLinear {
    matrix: Matrix,
    adapter: Option<Adapter>,
}

/// LoRA adapter of a matrix: adds `alpha / rank · B · A` (Hu et al., 2021, §4.1).
#[derive(Clone, Debug)]
struct Adapter {
    /// `A`, `(rank, c_in)`.
    down: Tensor,
    /// `B`, `(c_out, rank)`.
    up: Tensor,
    /// `alpha / rank`.
    scale: f64,
}

impl AdaptedLinear {
    /// Loads a matrix by name, and its adapter if the builder has one.
    pub fn load(vb: &VarBuilder, (rows, columns): (usize, usize), name: &str) -> Result<Self> {
        let matrix = Matrix::load(vb, (rows, columns), &format!("{name}.weight"))?;
        let [down, up, alpha] = ADAPTER_SUFFIXES.map(|suffix| format!("{name}.{suffix}"));
        if !vb.contains_tensor(&down) {
            let adapter = None;
            return Ok(Self { matrix, adapter });
        }
        let down = vb.get_unchecked(&down)?;
        let (rank, width) = down.dims2()?;
        if width != columns || rank == 0 {
            bail!("adapter of `{name}`: shape ({rank}, {width}), expected (rank, {columns})");
        }
        let alpha = vb.get((), &alpha)?.to_scalar::<f32>()?;
        let adapter = Some(Adapter {
            up: vb.get((rows, rank), &up)?,
            down,
            scale: f64::from(alpha) / rank as f64,
        });
        Ok(Self { matrix, adapter })
    }

    /// Returns the matrix without the adapter.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Multiplies each row of `x` by the transposed matrix and adds a bias.
    ///
    /// The adapter is not merged into the matrix, so that training only computes gradients of `A`
    /// and `B`.
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

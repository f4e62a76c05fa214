//! Tensor operations shared by the vision encoder and the language models of acem3: fast on the CPU and
//! differentiable.
//!
//! candle's fused softmax and layer norm silently drop gradients, its composed versions make about six passes
//! over memory, and its row sum (the gradient of every bias) is scalar. On the CPU in f32 each operation here is
//! one pass with its own backward pass; on other devices and for other types it is composed of candle's
//! differentiable operations, and tests check that both agree. Rows are cut into blocks of fixed size and sums over
//! blocks are taken in order, so results do not depend on the number of threads.

mod activation;
mod bias;
mod cross_entropy;
mod custom_gradient;
mod elements;
mod exp;
mod layer_norm;
mod linear;
mod matmul;
mod matrix;
mod reduce;
mod softmax;
#[cfg(test)]
mod tests;

pub use activation::{Activation, activate};
pub use bias::add_bias;
pub use cross_entropy::{cross_entropy, log_probabilities};
pub use custom_gradient::{with_gradient, with_gradients};
pub use elements::{as_f32_slice, to_f32_vec};
pub use layer_norm::LayerNorm;
pub use linear::linear;
pub use matmul::matmul_transposed;
pub use matrix::{BLOCK_TYPES, Matrix, dequantize_rows};
pub use softmax::softmax;

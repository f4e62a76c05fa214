//! Tensor operations shared by the vision tower and the language models of acem3. All are
//! differentiable and fast on the CPU.
//!
//! candle's fused softmax and layer norm silently drop gradients. Its composed versions make about
//! six passes over memory. Its row sum, which is the gradient of every bias, is not vectorised. On
//! the CPU in f32, each operation here makes one pass and has its own backward pass. On other
//! devices and for other dtypes it is composed of candle's differentiable operations. On a GPU,
//! tensors that need no gradient go to the kernels of the module `gpu`. Tests check that all versions agree.
//!
//! Threads share the work in blocks of a fixed number of rows, and sums over blocks are added in
//! block order. So results do not depend on the number of threads.

mod activation;
mod aligned_rows;
mod attention;
mod bias;
mod byte_product;
mod cross_entropy;
mod custom_gradient;
mod elements;
mod exp;
mod gpu;
mod layer_norm;
mod linear;
mod matmul;
mod matrix;
mod output_columns;
mod reduce;
mod residual;
mod rms_norm;
mod row_product;
mod softmax;
mod span_attention;
mod swiglu;
#[cfg(test)]
mod tests;
mod tile_product;

pub use activation::{Activation, activate};
pub use attention::{AttendedSequence, AttentionSettings, KeyValueBlock, attend, attend_unmasked};
pub use bias::add_bias;
pub use byte_product::{arrange_blocks, has_byte_products, instruction_set};
pub use cross_entropy::{cross_entropy, log_probabilities};
pub use custom_gradient::{with_gradient, with_gradients};
pub use elements::{as_f32_slice, to_f32_vec};
pub use gpu::{AttentionPass, CacheShape, DeviceCache, NewHeads, PassSequence};
pub use layer_norm::LayerNorm;
pub use linear::linear;
pub use matmul::matmul_transposed;
pub use matrix::{BLOCK_TYPES, Matrix, ROUNDED_SUFFIX, ROW_MULTIPLE, dequantize_rows};
pub use reduce::sum_of_products;
pub use residual::add_to_sum;
pub use rms_norm::{rms_norm, rms_norm_to};
pub use softmax::{softmax, softmax_row};
pub use span_attention::{CausalSpan, attend_spans};
pub use swiglu::swiglu;
pub use tile_product::{RoundedWeight, bf16_instructions};

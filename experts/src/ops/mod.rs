//! Differentiable tensor operations of the decoder.
//!
//! candle's fused softmax, RMS norm and rotary embedding drop the gradient silently, and their
//! differentiable versions are chains of elementwise kernels. On the CPU, each operation here is
//! fused: one pass over the data forwards and one backwards. On other devices it is composed of
//! candle's operations. Tests compare both versions. Training and judging use the same operations.

mod adapted_linear;
mod attention_mask;
mod masked_softmax;
mod rope;

pub use adapted_linear::{
    ADAPTER_SUFFIXES, AdaptedLinear, LAYER_MATRICES, is_adapter, takes_adapter,
};
pub use attention_mask::AttentionMask;
pub use masked_softmax::masked_softmax;
pub use rope::{RotaryTables, rope};

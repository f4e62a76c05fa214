//! The tensor operations that candle offers only without gradient, in one form that has both.
//!
//! candle's fused softmax, RMS norm and rotary embedding drop the gradient silently, and their
//! differentiable twins are chains of elementwise kernels. Each operation here is one pass over the
//! data on the CPU, forwards and backwards, and a composition of differentiable operations elsewhere;
//! tests hold the two equal. Training and judging therefore run the same code.

mod masked_softmax;
mod projection;
mod rms_norm;
mod rope;
mod swiglu;

pub use masked_softmax::{Visibility, masked_softmax};
pub use projection::{ADAPTER, Projection};
pub use rms_norm::rms_norm;
pub use rope::{Rotary, rope};
pub use swiglu::swiglu;

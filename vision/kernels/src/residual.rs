//! The sum of the outputs of decoder layers.

use candle::{Result, Tensor};

use crate::gpu::layers;

/// Adds the output of a layer, which may have another type, to the sum of the layers. Differentiable.
///
/// # Shapes
/// `sum`, `output` and the result have equal shapes. The result has the type of `sum`.
pub fn add_to_sum(sum: &Tensor, output: &Tensor) -> Result<Tensor> {
    if sum.dtype() == output.dtype() {
        return sum + output;
    }
    match layers::add(sum, output)? {
        Some(sum) => Ok(sum),
        None => sum + output.to_dtype(sum.dtype())?,
    }
}

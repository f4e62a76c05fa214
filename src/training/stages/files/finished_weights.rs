//! Checks of the checkpoint of a finished stage.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, anyhow};
use candle::{DType, Tensor};

/// Checks that the checkpoint of a finished stage has weights, and that they are numbers. A training writes no
/// others.
///
/// # Errors
/// Errors name the file and the damage.
pub(super) fn check_finished_weights(path: &Path, tensors: &HashMap<String, Tensor>) -> Result<()> {
    let damaged = |problem: &str| {
        anyhow!(
            "{}: a damaged checkpoint: {problem}\n\
             hint: delete it and the files of all later stages, then run the same command; it trains these stages again",
            path.display()
        )
    };
    if tensors.is_empty() {
        return Err(damaged("it has no weights"));
    }
    for (name, tensor) in tensors {
        // A sum is not finite if one of its terms is not.
        let sum = tensor.to_dtype(DType::F32)?.sum_all()?.to_scalar::<f32>()?;
        if !sum.is_finite() {
            return Err(damaged(&format!("`{name}` has values that are no numbers")));
        }
    }
    Ok(())
}

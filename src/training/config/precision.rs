//! Element type of a model in training.

use candle::DType;
use serde::{Deserialize, Serialize};

/// Element type of a model's matrices in training. Activations, norms, biases, losses and accumulated
/// gradients are always f32, and so are trained weights in checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Half the memory. The model computes with bf16 copies; the optimizer has f32 master weights.
    Bf16,
}

impl Precision {
    /// Returns the tensor type.
    pub fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::Bf16 => DType::BF16,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn is_f32(&self) -> bool {
        *self == Self::F32
    }
}

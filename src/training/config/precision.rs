//! The type in which a model is trained.

use candle::DType;
use serde::{Deserialize, Serialize};

/// The type of a model's matrices in training. Activations, norms, biases, losses and gradients that are added up are
/// in f32 in either case, and so is what a stage leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Half the memory: rounded copies, the optimizer keeping the f32 value of each weight that is trained.
    Bf16,
}

impl Precision {
    /// The type of tensors.
    pub fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::Bf16 => DType::BF16,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(crate) fn is_single(&self) -> bool {
        *self == Self::F32
    }
}

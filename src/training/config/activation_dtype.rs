//! Element type of the frozen-activation cache.

use candle::DType;
use serde::{Deserialize, Serialize};

/// Element type of the frozen-activation cache on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationDtype {
    /// Half precision. Sufficient unless an activation exceeds 65,504.
    #[default]
    F16,
    /// Same size as `f16`, with the range of `f32`.
    Bf16,
    /// Single precision. The cache is exact.
    F32,
}

impl ActivationDtype {
    /// Returns the tensor type.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
            Self::F32 => DType::F32,
        }
    }
}

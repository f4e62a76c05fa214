//! Rows of a weight matrix in their stored type.

use candle::quantized::GgmlDType;
use candle::{CpuStorage, Layout};
use half::slice::HalfFloatSliceExt as _;

/// Values of a `Q8_0` block.
pub(crate) const Q8_VALUES: usize = 32;
/// Bytes of a `Q8_0` block: a scale in f16, then one byte per value.
pub(crate) const Q8_BYTES: usize = 34;

/// The values of a matrix, row by row.
#[derive(Clone, Copy)]
pub(crate) enum WeightRows<'a> {
    F32(&'a [f32]),
    /// The bits of bf16 values.
    Bf16(&'a [u16]),
    /// The bits of f16 values.
    F16(&'a [u16]),
    /// `Q8_0` blocks.
    Q8(&'a [[u8; Q8_BYTES]]),
}

impl<'a> WeightRows<'a> {
    /// Borrows a contiguous matrix, or its packed blocks of this type. `None` if its type is not
    /// supported.
    pub(crate) fn borrow(
        storage: &'a CpuStorage,
        layout: &Layout,
        block_type: Option<GgmlDType>,
    ) -> Option<Self> {
        let (start, end) = layout.contiguous_offsets()?;
        Some(match (storage, block_type) {
            (CpuStorage::F32(values), None) => Self::F32(values.get(start..end)?),
            (CpuStorage::BF16(values), None) => {
                Self::Bf16(values.get(start..end)?.reinterpret_cast())
            }
            (CpuStorage::F16(values), None) => {
                Self::F16(values.get(start..end)?.reinterpret_cast())
            }
            (CpuStorage::U8(bytes), Some(GgmlDType::Q8_0)) => {
                Self::Q8(bytes.get(start..end)?.as_chunks().0)
            }
            _ => return None,
        })
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(bits) | Self::F16(bits) => bits.len(),
            Self::Q8(blocks) => blocks.len() * Q8_VALUES,
        }
    }
}

//! Rows of a weight matrix in their stored type, read as f32.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use candle::quantized::GgmlDType;
use candle::{CpuStorage, Layout};
use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};

/// Values of a `Q8_0` block.
const Q8_VALUES: usize = 32;
/// Bytes of a `Q8_0` block: a scale in f16, then one byte per value.
const Q8_BYTES: usize = 34;

/// The values of a matrix, row by row.
#[derive(Clone, Copy)]
pub(crate) enum WeightRows<'a> {
    F32(&'a [f32]),
    Bf16(&'a [bf16]),
    F16(&'a [f16]),
    /// Packed `Q8_0` blocks.
    Q8(&'a [u8]),
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
        match (storage, block_type) {
            (CpuStorage::F32(values), None) => values.get(start..end).map(Self::F32),
            (CpuStorage::BF16(values), None) => values.get(start..end).map(Self::Bf16),
            (CpuStorage::F16(values), None) => values.get(start..end).map(Self::F16),
            (CpuStorage::U8(bytes), Some(GgmlDType::Q8_0)) => bytes.get(start..end).map(Self::Q8),
            _ => None,
        }
    }

    /// Returns true if the values need no conversion.
    pub(crate) fn is_f32(&self) -> bool {
        matches!(self, Self::F32(_))
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Q8(bytes) => bytes.len() / Q8_BYTES * Q8_VALUES,
        }
    }

    /// Returns `N` values from the position `start`, converted in `buffer` if needed. A position in
    /// blocks is a multiple of the values of a block.
    #[inline(always)]
    pub(crate) fn read<'b>(&'b self, start: usize, buffer: &'b mut [f32]) -> &'b [f32] {
        let end = start + buffer.len();
        match self {
            Self::F32(values) => return &values[start..end],
            Self::Bf16(values) => {
                for (y, x) in buffer.iter_mut().zip(&values[start..end]) {
                    *y = f32::from_bits(u32::from(x.to_bits()) << 16);
                }
            }
            Self::F16(values) => values[start..end].convert_to_f32_slice(buffer),
            Self::Q8(bytes) => {
                let blocks = bytes[start / Q8_VALUES * Q8_BYTES..].chunks_exact(Q8_BYTES);
                for (y, block) in buffer.chunks_mut(Q8_VALUES).zip(blocks) {
                    let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
                    for (y, x) in y.iter_mut().zip(&block[2..]) {
                        *y = f32::from(x.cast_signed()) * scale;
                    }
                }
            }
        }
        buffer
    }
}

//! How a tensor's values lie in a file: plain numbers, or blocks that share a scale.

use candle::DType;
use candle::quantized::GgmlDType;

/// The type of a tensor in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TensorEncoding {
    /// Numbers, one after the other.
    Plain(DType),
    /// Blocks of quantised numbers (llama.cpp's `ggml-quants`), none across two rows.
    Blocks(GgmlDType),
}

impl From<DType> for TensorEncoding {
    fn from(dtype: DType) -> Self {
        Self::Plain(dtype)
    }
}

impl TensorEncoding {
    /// The type of this number in a GGUF file (`ggml_type` in llama.cpp's `ggml.h`), where it is one
    /// that is read.
    pub(crate) fn of_ggml(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Plain(DType::F32),
            1 => Self::Plain(DType::F16),
            2 => Self::Blocks(GgmlDType::Q4_0),
            3 => Self::Blocks(GgmlDType::Q4_1),
            6 => Self::Blocks(GgmlDType::Q5_0),
            7 => Self::Blocks(GgmlDType::Q5_1),
            8 => Self::Blocks(GgmlDType::Q8_0),
            10 => Self::Blocks(GgmlDType::Q2K),
            11 => Self::Blocks(GgmlDType::Q3K),
            12 => Self::Blocks(GgmlDType::Q4K),
            13 => Self::Blocks(GgmlDType::Q5K),
            14 => Self::Blocks(GgmlDType::Q6K),
            30 => Self::Plain(DType::BF16),
            _ => return None,
        })
    }

    /// Its name, as the field writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain(dtype) => dtype.as_str(),
            Self::Blocks(blocks) => match blocks {
                GgmlDType::F32 => "f32",
                GgmlDType::F16 => "f16",
                GgmlDType::BF16 => "bf16",
                GgmlDType::Q4_0 => "Q4_0",
                GgmlDType::Q4_1 => "Q4_1",
                GgmlDType::Q5_0 => "Q5_0",
                GgmlDType::Q5_1 => "Q5_1",
                GgmlDType::Q8_0 => "Q8_0",
                GgmlDType::Q8_1 => "Q8_1",
                GgmlDType::Q2K => "Q2_K",
                GgmlDType::Q3K => "Q3_K",
                GgmlDType::Q4K => "Q4_K",
                GgmlDType::Q5K => "Q5_K",
                GgmlDType::Q6K => "Q6_K",
                GgmlDType::Q8K => "Q8_K",
            },
        }
    }

    /// Bytes of a tensor of this shape; `None` where its rows are not whole blocks, or it has more
    /// bytes than can be counted.
    pub(crate) fn bytes(self, shape: &[usize]) -> Option<usize> {
        let (values, bytes) = match self {
            Self::Plain(dtype) => (1, dtype.size_in_bytes()),
            Self::Blocks(blocks) => (blocks.block_size(), blocks.type_size()),
        };
        if shape.last().copied().unwrap_or(1) % values != 0 {
            return None;
        }
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
        (count / values).checked_mul(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_blocks() {
        let q4 = TensorEncoding::of_ggml(12).unwrap();
        assert_eq!(
            (q4.name(), q4.bytes(&[3, 512])),
            ("Q4_K", Some(3 * 2 * 144))
        );
        // As many values as two blocks hold, but a block would lie across rows.
        assert_eq!(q4.bytes(&[4, 128]), None);
        assert_eq!(TensorEncoding::from(DType::BF16).bytes(&[3, 5]), Some(30));
        assert_eq!(
            TensorEncoding::Plain(DType::F32).bytes(&[usize::MAX, 2]),
            None
        );
        assert_eq!(TensorEncoding::of_ggml(16), None);
    }
}

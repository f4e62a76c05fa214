//! Encoding of a tensor in a file: plain numbers, or quantised blocks of values that share a scale.

use candle::DType;
use candle::quantized::GgmlDType;

/// Encoding of a tensor in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TensorEncoding {
    /// Contiguous numbers.
    Plain(DType),
    /// Quantised blocks (llama.cpp's `ggml-quants`); each row is a whole number of blocks.
    Blocks(GgmlDType),
}

impl From<DType> for TensorEncoding {
    fn from(dtype: DType) -> Self {
        Self::Plain(dtype)
    }
}

impl TensorEncoding {
    /// Returns the encoding of a tensor of a GGUF file; `None` for types of intermediate results.
    pub(crate) fn from_ggml_type(dtype: GgmlDType) -> Option<Self> {
        match dtype {
            GgmlDType::F32 => Some(Self::Plain(DType::F32)),
            GgmlDType::F16 => Some(Self::Plain(DType::F16)),
            GgmlDType::BF16 => Some(Self::Plain(DType::BF16)),
            GgmlDType::Q8_1 | GgmlDType::Q8K => None,
            blocks => Some(Self::Blocks(blocks)),
        }
    }

    /// Returns its usual name, such as `bf16` or `Q4_K`.
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

    /// Returns the size of a tensor of this shape in bytes; `None` if its rows are not whole blocks
    /// or the size overflows.
    pub(crate) fn byte_len(self, shape: &[usize]) -> Option<usize> {
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
        let q4 = TensorEncoding::from_ggml_type(GgmlDType::Q4K).unwrap();
        assert_eq!((q4.name(), q4.byte_len(&[3, 512])), ("Q4_K", Some(3 * 2 * 144)));
        // The values fill two blocks, but each block would span two rows.
        assert_eq!(q4.byte_len(&[4, 128]), None);
        assert_eq!(TensorEncoding::from(DType::BF16).byte_len(&[3, 5]), Some(30));
        assert_eq!(TensorEncoding::Plain(DType::F32).byte_len(&[usize::MAX, 2]), None);
        assert_eq!(TensorEncoding::from_ggml_type(GgmlDType::Q8K), None);
    }
}

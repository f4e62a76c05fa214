//! Concatenation of embedded text and image tokens into one prompt.

use std::ops::Range;

use candle::{Result, Tensor, bail};

/// A part of a prompt in the embedding space of the decoder.
#[derive(Clone, Debug)]
pub enum PromptSegment {
    /// Embedded text, `(t, c)`.
    Text(Tensor),
    /// Image tokens, `(p, c)`.
    Image(Tensor),
}

/// An embedded prompt.
#[derive(Clone, Debug)]
pub struct SplicedPrompt {
    /// Embeddings of all tokens, `(t, c)`.
    pub embeddings: Tensor,
    /// Index range of the tokens of each image.
    pub image_ranges: Vec<Range<usize>>,
}

/// Concatenates segments (as LLaVA's `prepare_inputs_labels_for_multimodal` does).
///
/// # Shapes
/// Segments `(t_i, c)` of one hidden size to `(Σ t_i, c)`; an empty list or unequal hidden sizes
/// are errors.
pub fn splice(segments: &[PromptSegment]) -> Result<SplicedPrompt> {
    let mut image_ranges = Vec::new();
    let mut parts = Vec::with_capacity(segments.len());
    let mut index = 0;
    for segment in segments {
        let (PromptSegment::Text(part) | PromptSegment::Image(part)) = segment;
        let (t, c) = part.dims2()?;
        if let Some(first) = parts.first().map(|p: &&Tensor| p.dim(1)).transpose()?
            && first != c
        {
            bail!("prompt segment: expected hidden size {first}, found {c}");
        }
        if matches!(segment, PromptSegment::Image(_)) {
            image_ranges.push(index..index + t);
        }
        index += t;
        parts.push(part);
    }
    if parts.is_empty() {
        bail!("the prompt has no segments");
    }
    Ok(SplicedPrompt { embeddings: Tensor::cat(&parts, 0)?, image_ranges })
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::{DType, Device};

    #[test]
    fn image_range_is_between_texts() -> Result<()> {
        let ones = |t| Tensor::ones((t, 4), DType::F32, &Device::Cpu);
        let zeros = Tensor::zeros((3, 4), DType::F32, &Device::Cpu)?;
        let spliced = splice(&[
            PromptSegment::Text(ones(2)?),
            PromptSegment::Image(zeros),
            PromptSegment::Text(ones(1)?),
        ])?;
        assert_eq!(spliced.image_ranges.len(), 1);
        assert_eq!(spliced.image_ranges[0], 2..5);
        let first_values = spliced.embeddings.narrow(1, 0, 1)?.flatten_all()?.to_vec1::<f32>()?;
        assert_eq!(first_values, [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        Ok(())
    }

    #[test]
    fn different_hidden_sizes_are_rejected() -> Result<()> {
        let part = |c| Tensor::zeros((1, c), DType::F32, &Device::Cpu).map(PromptSegment::Text);
        assert!(splice(&[part(4)?, part(5)?]).is_err());
        assert!(splice(&[]).is_err());
        Ok(())
    }
}

//! Joining embedded text and image tokens into one sequence.

use std::ops::Range;

use candle::{Result, Tensor, bail};

/// One stretch of a prompt, already in the language model's space.
#[derive(Clone, Debug)]
pub enum Segment {
    /// Embedded text, `(t, c)`.
    Text(Tensor),
    /// Image tokens, `(p, c)`.
    Image(Tensor),
}

/// A whole embedded prompt.
#[derive(Clone, Debug)]
pub struct Spliced {
    /// `(t, c)`.
    pub embeddings: Tensor,
    /// Which places hold image tokens, one range for each image.
    pub images: Vec<Range<usize>>,
}

/// Joins segments in order (the role of LLaVA's `prepare_inputs_labels_for_multimodal`).
///
/// # Shapes
/// Segments `(t_i, c)` of one hidden size to `(Σ t_i, c)`; an empty list or unequal hidden sizes
/// are errors.
pub fn splice(segments: &[Segment]) -> Result<Spliced> {
    let mut images = Vec::new();
    let mut parts = Vec::with_capacity(segments.len());
    let mut place = 0;
    for segment in segments {
        let (Segment::Text(part) | Segment::Image(part)) = segment;
        let (t, c) = part.dims2()?;
        if let Some(first) = parts.first().map(|p: &&Tensor| p.dim(1)).transpose()?
            && first != c
        {
            bail!("cannot splice a segment of hidden size {c} into a prompt of {first}");
        }
        if matches!(segment, Segment::Image(_)) {
            images.push(place..place + t);
        }
        place += t;
        parts.push(part);
    }
    if parts.is_empty() {
        bail!("cannot splice an empty prompt");
    }
    Ok(Spliced {
        embeddings: Tensor::cat(&parts, 0)?,
        images,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::{DType, Device};

    #[test]
    fn the_image_lies_between_the_texts() -> Result<()> {
        let ones = |t| Tensor::ones((t, 4), DType::F32, &Device::Cpu);
        let zeros = Tensor::zeros((3, 4), DType::F32, &Device::Cpu)?;
        let spliced = splice(&[
            Segment::Text(ones(2)?),
            Segment::Image(zeros),
            Segment::Text(ones(1)?),
        ])?;
        assert_eq!(spliced.images.len(), 1);
        assert_eq!(spliced.images[0], 2..5);
        let firsts = spliced
            .embeddings
            .narrow(1, 0, 1)?
            .flatten_all()?
            .to_vec1::<f32>()?;
        assert_eq!(firsts, [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        Ok(())
    }

    #[test]
    fn unequal_hidden_sizes_are_an_error() -> Result<()> {
        let part = |c| Tensor::zeros((1, c), DType::F32, &Device::Cpu).map(Segment::Text);
        assert!(splice(&[part(4)?, part(5)?]).is_err());
        assert!(splice(&[]).is_err());
        Ok(())
    }
}

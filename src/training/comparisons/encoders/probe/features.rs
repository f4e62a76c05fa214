//! Pooled image features of a frozen encoder, with the encoding time.

use std::time::Instant;

use acem3_vision::{DecodedImage, SelectFeature};
use anyhow::{Context, Result};
use candle::Tensor;

use crate::training::comparisons::encoders::candidate::Candidate;

/// Images per batch.
const BATCH: usize = 16;

/// Pooled features of some images.
pub(super) struct Features {
    /// Features, one row per image.
    pub(super) rows: Vec<Vec<f32>>,
    /// Seconds spent in the encoder.
    pub(super) seconds: f64,
}

/// Encodes images. The features are the mean of the selected tokens, followed by the class token if
/// it is selected.
pub(super) fn encode_images(candidate: &Candidate, images: &[&DecodedImage]) -> Result<Features> {
    let tower = candidate.tower()?;
    let class_token = candidate.config.variant.class_token
        && candidate.selection.select_feature == SelectFeature::ClsPatch;
    let mut rows = Vec::with_capacity(images.len());
    let mut seconds = 0.0;
    for batch in images.chunks(BATCH) {
        let pixels = batch.iter().map(|image| {
            let pixels = candidate.processor.preprocess(image);
            pixels.with_context(|| format!("encoder {}", candidate.name))
        });
        let pixels = Tensor::stack(&pixels.collect::<Result<Vec<_>>>()?, 0)?;
        let start = Instant::now();
        let tokens = tower.forward(&pixels)?;
        seconds += start.elapsed().as_secs_f64();
        let mean = tokens.mean(1)?;
        let pooled = if class_token {
            Tensor::cat(&[&mean, &tokens.narrow(1, 0, 1)?.squeeze(1)?], 1)?
        } else {
            mean
        };
        rows.extend(pooled.to_vec2::<f32>()?);
    }
    Ok(Features { rows, seconds })
}

/// Standardises every column with the mean and standard deviation of `train`.
pub(super) fn standardise(train: &mut [Vec<f32>], test: &mut [Vec<f32>]) {
    let n = train.len().max(1) as f32;
    let columns = train.first().map_or(0, Vec::len);
    for column in 0..columns {
        let mean = train.iter().map(|row| row[column]).sum::<f32>() / n;
        let squares = train.iter().map(|row| (row[column] - mean).powi(2));
        let deviation = (squares.sum::<f32>() / n).sqrt().max(1e-6);
        for row in train.iter_mut().chain(test.iter_mut()) {
            if let Some(value) = row.get_mut(column) {
                *value = (*value - mean) / deviation;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoints::hub::HubArgs;

    #[test]
    fn columns_are_standardised_by_training_rows() {
        let mut train = vec![vec![1.0, 5.0], vec![3.0, 5.0]];
        let mut test = vec![vec![4.0, 5.0]];
        standardise(&mut train, &mut test);
        assert_eq!(train, [[-1.0, 0.0], [1.0, 0.0]]);
        assert_eq!(test, [[2.0, 0.0]]);
    }

    #[test]
    fn every_image_has_one_row() {
        let candidate = Candidate::open("random", &HubArgs::default(), true).unwrap();
        let image = DecodedImage::from_rgb(20, 20, vec![90; 1200]).unwrap();
        let features = encode_images(&candidate, &[&image, &image]).unwrap();
        assert_eq!(features.rows.len(), 2);
        assert_eq!(features.rows[0].len(), 2 * candidate.config.hidden_size);
        assert_eq!(features.rows[0], features.rows[1]);
    }
}

//! Bounds of preprocessing settings.

use super::error::ProcessError;
use super::image_processor::ImageProcessor;
use super::size::{CropSize, ResizeSize};

/// Maximum length of an edge after resizing, in pixels.
const MAX_EDGE: usize = 8192;
/// Maximum factor, mean and standard deviation. Files without rescaling have values up to 255.
const MAX_VALUE: f64 = 1000.0;
/// Minimum factor and standard deviation.
const MIN_VALUE: f64 = 1e-6;

impl ImageProcessor {
    /// Checks the bounds of all numbers.
    ///
    /// # Errors
    ///
    /// A number is out of range; the message names its field.
    pub fn validate(&self) -> Result<(), ProcessError> {
        let out_of_range = |field: &str, found: &dyn std::fmt::Display, expected: &str| {
            let problem = format!("`{field}` is {found}, expected {expected}");
            Err(ProcessError::invalid_settings(problem))
        };
        let is_scale = |value: f64| (MIN_VALUE..=MAX_VALUE).contains(&value);
        let scale_range = format!("a number from {MIN_VALUE} to {MAX_VALUE}");
        if self.do_rescale && !is_scale(self.rescale_factor) {
            return out_of_range("rescale_factor", &self.rescale_factor, &scale_range);
        }
        if self.do_normalize {
            let is_mean = |value: &f64| (-MAX_VALUE..=MAX_VALUE).contains(value);
            if let Some(mean) = self.image_mean.iter().find(|mean| !is_mean(mean)) {
                let range = format!("numbers from -{MAX_VALUE} to {MAX_VALUE}");
                return out_of_range("image_mean", mean, &range);
            }
            if let Some(std) = self.image_std.iter().find(|std| !is_scale(**std)) {
                return out_of_range("image_std", std, &scale_range);
            }
        }
        let size = match self.size {
            ResizeSize::ShortestEdge { shortest_edge: edge } | ResizeSize::Number(edge) => {
                [edge; 2]
            }
            ResizeSize::Exact { height, width } => [height, width],
        };
        let crop = self.crop_size.map(|crop| match crop {
            CropSize::Number(edge) => [edge; 2],
            CropSize::Exact { height, width } => [height, width],
        });
        let sizes = [("size", self.do_resize.then_some(size)), ("crop_size", crop)];
        for (field, edge) in sizes
            .into_iter()
            .flat_map(|(field, edges)| edges.into_iter().flatten().map(move |edge| (field, edge)))
        {
            if !(1..=MAX_EDGE).contains(&edge) {
                let range = format!("1 to {MAX_EDGE} pixels");
                return out_of_range(field, &edge, &range);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_rejected() {
        let base = ImageProcessor::default();
        base.validate().unwrap();
        ImageProcessor::square(224).validate().unwrap();
        let without_rescaling = ImageProcessor {
            do_rescale: false,
            rescale_factor: 0.0,
            image_mean: [123.675, 116.28, 103.53],
            image_std: [58.395, 57.12, 57.375],
            ..base.clone()
        };
        without_rescaling.validate().unwrap();
        for factor in [0.0, -1.0 / 255.0, f64::NAN, f64::INFINITY, 1e9, 1e-300] {
            let processor = ImageProcessor { rescale_factor: factor, ..base.clone() };
            let error = processor.validate().unwrap_err().to_string();
            assert!(error.contains(&format!("`rescale_factor` is {factor}")), "{error}");
        }
        for std in [0.0, -0.5, f64::NAN, 1e-30] {
            let processor = ImageProcessor { image_std: [0.5, std, 0.5], ..base.clone() };
            assert!(processor.validate().unwrap_err().to_string().contains("`image_std`"));
        }
        for mean in [f64::NAN, f64::NEG_INFINITY, 1e30] {
            let processor = ImageProcessor { image_mean: [mean, 0.5, 0.5], ..base.clone() };
            assert!(processor.validate().unwrap_err().to_string().contains("`image_mean`"));
        }
        let edge = |edge| ImageProcessor { size: ResizeSize::Number(edge), ..base.clone() };
        let crop = |edge| ImageProcessor {
            crop_size: Some(CropSize::Exact { height: 4, width: edge }),
            ..base.clone()
        };
        for wrong in [0, 1 << 40] {
            assert!(edge(wrong).validate().unwrap_err().to_string().contains("`size`"));
            assert!(crop(wrong).validate().unwrap_err().to_string().contains("`crop_size`"));
        }
    }
}

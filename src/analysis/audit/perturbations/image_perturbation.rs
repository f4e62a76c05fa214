//! Perturbed images: three changes that should affect the judge, and one (faint) that should not.

use std::sync::Arc;

use acem3_vision::DecodedImage;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::data::images::LoadedImage;
use crate::data::images::derived::{blank_image, image_from_pixels};

/// The image that a judge receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImagePerturbation {
    /// The case's own image, or none if the case has none.
    Own,
    /// A grey image of the same size.
    Blank,
    /// The image of the case with this id.
    #[serde(rename = "of")]
    OtherCase(String),
    /// The centre of the image: half its width and height.
    Cropped,
    /// The image with every pixel one grey level brighter.
    Faint,
}

impl ImagePerturbation {
    /// Applies the change to an image. The caller loads the image of another case
    /// ([`Self::OtherCase`]).
    pub(crate) fn apply(&self, image: &Arc<LoadedImage>) -> Result<Arc<LoadedImage>> {
        match self {
            Self::Own | Self::OtherCase(_) => Ok(Arc::clone(image)),
            Self::Blank => blank_image(&image.decoded),
            Self::Cropped => Ok(image_from_pixels("cropped", crop_centre(&image.decoded)?)),
            Self::Faint => {
                let (width, height) = (image.decoded.width(), image.decoded.height());
                let pixels = image.decoded.data().iter().map(|v| v.saturating_add(1));
                let decoded = DecodedImage::from_rgb(width, height, pixels.collect());
                Ok(image_from_pixels("faint", decoded.context("the image has no pixels")?))
            }
        }
    }
}

/// Returns the centre of an image, at least one pixel.
fn crop_centre(image: &DecodedImage) -> Result<DecodedImage> {
    let crop = |side: usize| (side.div_ceil(2), side / 4);
    let ((width, left), (height, top)) = (crop(image.width()), crop(image.height()));
    let mut pixels = Vec::with_capacity(3 * width * height);
    for row in image.data().chunks_exact(3 * image.width()).skip(top).take(height) {
        pixels.extend_from_slice(row.get(3 * left..3 * (left + width)).unwrap_or_default());
    }
    DecodedImage::from_rgb(width, height, pixels).context("the image has no pixels")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: usize, height: usize) -> Arc<LoadedImage> {
        let pixels = (0..width * height).flat_map(|i| [i as u8; 3]).collect();
        image_from_pixels("x", DecodedImage::from_rgb(width, height, pixels).unwrap())
    }

    #[test]
    fn perturbed_images_differ() {
        let original = image(4, 4);
        let cropped = ImagePerturbation::Cropped.apply(&original).unwrap();
        let pixels: Vec<u8> = cropped.decoded.data().iter().step_by(3).copied().collect();
        assert_eq!(pixels, [5, 6, 9, 10]);
        let faint = ImagePerturbation::Faint.apply(&original).unwrap();
        assert_eq!(faint.decoded.data()[..6], [1, 1, 1, 2, 2, 2]);
        let blanked = ImagePerturbation::Blank.apply(&original).unwrap();
        assert!(blanked.decoded.data().iter().all(|v| *v == 127));
        let mut hashes = vec![original.sha256, cropped.sha256, faint.sha256, blanked.sha256];
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), 4);
        for (width, height) in [(1, 1), (1, 5), (3, 2)] {
            assert!(ImagePerturbation::Cropped.apply(&image(width, height)).is_ok());
        }
    }
}

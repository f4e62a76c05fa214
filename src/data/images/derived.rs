//! Images computed by the program instead of read from files.

use std::sync::Arc;

use acem3_vision::DecodedImage;
use anyhow::{Context as _, Result};

use super::LoadedImage;
use crate::support::digest::Digest;

/// Returns a grey image of the same size.
pub(crate) fn blank_image(image: &DecodedImage) -> Result<Arc<LoadedImage>> {
    let (width, height) = (image.width(), image.height());
    let decoded = DecodedImage::from_rgb(width, height, vec![127; width * height * 3]);
    let decoded = decoded.context("the image has no pixels")?;
    Ok(image_from_pixels("blank", decoded))
}

/// Creates an image from pixels. Its hash is computed from width and pixels.
pub(crate) fn image_from_pixels(name: &str, decoded: DecodedImage) -> Arc<LoadedImage> {
    let mut bytes = decoded.width().to_le_bytes().to_vec();
    bytes.extend_from_slice(decoded.data());
    let sha256 = Digest::sha256(&bytes);
    Arc::new(LoadedImage { name: name.to_owned(), sha256, decoded })
}

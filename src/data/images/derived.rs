//! Images that are not read from files.

use std::sync::Arc;

use acem3_vision::DecodedImage;
use anyhow::{Context as _, Result};

use super::LoadedImage;
use crate::support::digest::Digest;

/// Returns a grey image of the same size.
pub(crate) fn blank(image: &DecodedImage) -> Result<Arc<LoadedImage>> {
    let (width, height) = (image.width(), image.height());
    let decoded = DecodedImage::from_rgb(width, height, vec![127; width * height * 3]);
    let decoded = decoded.context("the image has no pixels")?;
    Ok(loaded("blank", decoded))
}

/// Wraps pixels as an image whose hash is computed from size and pixels.
pub(crate) fn loaded(name: &str, decoded: DecodedImage) -> Arc<LoadedImage> {
    let mut bytes = decoded.width().to_le_bytes().to_vec();
    bytes.extend_from_slice(decoded.data());
    let sha256 = Digest::of(&bytes);
    Arc::new(LoadedImage {
        name: name.to_owned(),
        sha256,
        decoded,
    })
}

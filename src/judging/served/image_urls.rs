//! Images as data URLs. Requests about one image share its text.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

use crate::data::images::{LoadedImage, encode_png};
use crate::support::digest::Digest;

/// Number of images whose URLs are kept for later cases.
const KEPT: usize = 8;

/// A data URL as a JSON string, or why the image cannot be encoded.
type EncodedUrl = Result<Arc<RawValue>, String>;

/// The data URLs of the most recent images.
#[derive(Debug, Default)]
pub(super) struct ImageUrls(Mutex<VecDeque<(Digest, Arc<OnceCell<EncodedUrl>>)>>);

impl ImageUrls {
    /// Returns the data URL of an image: a PNG of the judged pixels, without the metadata of the file.
    pub(super) async fn get(&self, image: Arc<LoadedImage>) -> EncodedUrl {
        let cell = self.cell(image.sha256);
        let encoded = cell.get_or_init(|| async {
            let task = tokio::task::spawn_blocking(move || encode(&image));
            task.await.unwrap_or_else(|error| Err(error.to_string()))
        });
        encoded.await.clone()
    }

    fn cell(&self, digest: Digest) -> Arc<OnceCell<EncodedUrl>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cell)) = kept.iter().find(|(known, _)| *known == digest) {
            return Arc::clone(cell);
        }
        let cell = Arc::new(OnceCell::new());
        kept.push_back((digest, Arc::clone(&cell)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        cell
    }
}

/// Encodes an image.
pub(super) fn encode(image: &LoadedImage) -> EncodedUrl {
    let describe = |error: String| format!("{}: cannot be encoded as PNG: {error}", image.name);
    let png = encode_png(&image.decoded).map_err(|error| describe(error.to_string()))?;
    let url = format!("\"data:image/png;base64,{}\"", STANDARD.encode(png));
    let url = RawValue::from_string(url).map_err(|error| describe(error.to_string()))?;
    Ok(url.into())
}

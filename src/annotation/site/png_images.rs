//! The images of cases as PNG, which has the pixels and nothing else of a file.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use acem3_vision::{DecodedImage, DicomView, DicomWindow};
use anyhow::{Error, Result};
use axum::body::Bytes;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::data::cases::ImageSource;
use crate::data::images::{ImageReader, encode_png};

/// Maximum size of all cached images in bytes. The newest image is always cached.
const CACHED_BYTES: usize = 128 << 20;

/// An image as a page shows it: center and width of a DICOM window, or the window of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestedImage {
    /// Where the image is.
    pub(super) source: ImageSource,
    /// Center and width of the window of a DICOM image.
    pub(super) window: Option<[f64; 2]>,
}

/// Reads and encodes images, and caches the most recent ones.
pub(super) struct PngImages {
    reader: Mutex<ImageReader>,
    /// The most recent images, the newest last.
    recent: Mutex<VecDeque<(RequestedImage, Bytes)>>,
    /// Images that are encoded at the same time: as many as there are cores, so that threads are left that
    /// write answers to the disk.
    encoding: Semaphore,
}

impl PngImages {
    /// Creates a cache over a reader.
    pub(super) fn new(reader: ImageReader) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            reader: Mutex::new(reader),
            recent: Mutex::new(VecDeque::new()),
            encoding: Semaphore::new(cores),
        }
    }

    /// Returns an image as PNG.
    ///
    /// # Errors
    /// If the image cannot be read.
    pub(super) async fn png(self: &Arc<Self>, image: RequestedImage) -> Result<Bytes> {
        if let Some(png) = self.cached(&image) {
            return Ok(png);
        }
        let _permit = self.encoding.acquire().await?;
        let images = Arc::clone(self);
        spawn_blocking(move || images.encode(image)).await?
    }

    fn reader(&self) -> MutexGuard<'_, ImageReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<(RequestedImage, Bytes)>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self, image: &RequestedImage) -> Option<Bytes> {
        let recent = self.recent();
        recent.iter().find(|(cached, _)| cached == image).map(|(_, png)| png.clone())
    }

    /// Reads, encodes and caches an image.
    fn encode(&self, shown: RequestedImage) -> Result<Bytes> {
        // Another request may have encoded it while this one waited.
        if let Some(png) = self.cached(&shown) {
            return Ok(png);
        }
        let (image, limits) = {
            let mut reader = self.reader();
            (reader.read(&shown.source).map_err(Error::msg)?, *reader.limits())
        };
        let loaded = match shown.window.filter(|_| image.is_dicom()) {
            Some([center, width]) => {
                let window = DicomWindow::CenterWidth { center, width: width.max(1.0) };
                let view = DicomView { window, ..image.view().clone() };
                image.with_view(view).load(&limits)
            }
            None => image.load(&limits),
        };
        let png = Bytes::from(encode_small_png(&loaded.map_err(Error::msg)?.decoded)?);
        let mut recent = self.recent();
        recent.push_back((shown, png.clone()));
        let size = |recent: &VecDeque<(RequestedImage, Bytes)>| {
            recent.iter().map(|(_, png)| png.len()).sum::<usize>()
        };
        while recent.len() > 1 && size(&recent) > CACHED_BYTES {
            recent.pop_front();
        }
        Ok(png)
    }
}

/// Encodes an image as PNG; a grey image, as most radiographs are, with one channel.
fn encode_small_png(image: &DecodedImage) -> image::ImageResult<Vec<u8>> {
    let pixels = image.data().as_chunks::<3>().0;
    if !pixels.iter().all(|[red, green, blue]| red == green && green == blue) {
        return encode_png(image);
    }
    let grey: Vec<u8> = pixels.iter().map(|[red, ..]| *red).collect();
    let (width, height) = (image.width() as u32, image.height() as u32);
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes).write_image(&grey, width, height, ExtendedColorType::L8)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use acem3_vision::ImageLimits;

    use super::*;

    fn shown(name: &str, picture: &image::DynamicImage) -> RequestedImage {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let bytes = Arc::from(bytes.into_inner());
        RequestedImage { source: ImageSource::Bytes { name: name.to_owned(), bytes }, window: None }
    }

    #[test]
    fn grey_and_coloured_images_keep_their_pixels() {
        let images = PngImages::new(ImageReader::new("".into(), ImageLimits::default()));
        let grey = image::GrayImage::from_fn(5, 4, |x, y| image::Luma([(x * 40 + y) as u8]));
        let coloured = image::RgbImage::from_fn(5, 4, |x, y| image::Rgb([x as u8, y as u8, 9]));
        for picture in [grey.into(), coloured.into()] {
            let picture: image::DynamicImage = picture;
            let shown = shown("a", &picture);
            let png = images.encode(shown.clone()).unwrap();
            let sent = image::load_from_memory(&png).unwrap();
            assert_eq!(sent.color(), picture.color());
            assert_eq!(sent.to_rgb8(), picture.to_rgb8());
            assert_eq!(images.cached(&shown), Some(png));
        }
        let other = RequestedImage {
            window: Some([1.0, 2.0]),
            ..shown("a", &image::GrayImage::new(5, 4).into())
        };
        assert_eq!(images.cached(&other), None);
    }
}

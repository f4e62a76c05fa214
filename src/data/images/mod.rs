//! Reads, hashes and decodes the images of cases, with a small cache.
//!
//! Data sets often have several consecutive questions about one image, so [`ImageReader`] caches
//! the most recent images. Every record key needs the hash of an image, but only judging needs the
//! pixels. Therefore an image is decoded on first use.

pub mod decoder;
pub(crate) mod derived;
pub mod image_cluster;
pub mod image_file;
pub mod outside_images;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use acem3_vision::{DecodedImage, DicomView, FileFormat, ImageLimits, detect_format};

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

use crate::data::cases::ImageSource;
use crate::data::images::decoder::decode_image;
use crate::data::images::image_file::read_image_file;
use crate::data::images::outside_images::OutsideImages;
use crate::support::digest::Digest;

/// Maximum number of cached images.
const CACHED_IMAGES: usize = 4;
/// Maximum size of the cached images in bytes, encoded and decoded. The newest image is always
/// cached.
const CACHED_BYTES: usize = 64 << 20;

/// A decoded image.
#[derive(Debug)]
pub struct LoadedImage {
    /// Path relative to the folder of the source, or the name in the data set.
    pub name: String,
    /// SHA-256 of the encoded bytes.
    pub sha256: Digest,
    /// Decoded pixels.
    pub decoded: DecodedImage,
}

/// An image that is decoded on first use.
#[derive(Debug)]
pub struct EncodedImage {
    /// Path relative to the folder of the source, or the name in the data set.
    pub name: String,
    /// SHA-256 of the encoded bytes.
    pub sha256: Digest,
    bytes: Arc<[u8]>,
    view: DicomView,
    loaded: OnceLock<Result<Arc<LoadedImage>, String>>,
}

impl LoadedImage {
    /// Returns the number of pixels.
    pub fn pixels(&self) -> u64 {
        self.decoded.width() as u64 * self.decoded.height() as u64
    }
}

impl EncodedImage {
    /// Returns the encoded bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the size in memory in bytes, encoded and decoded.
    fn memory_bytes(&self) -> usize {
        let decoded = self.loaded.get().and_then(|loaded| loaded.as_ref().ok());
        self.bytes.len() + decoded.map_or(0, |loaded| loaded.decoded.data().len())
    }

    /// Returns the frame and window that a DICOM object is shown with.
    pub fn view(&self) -> &DicomView {
        &self.view
    }

    /// Returns the image with another frame and window.
    #[must_use]
    pub fn with_view(&self, view: DicomView) -> Self {
        let (name, bytes) = (self.name.clone(), Arc::clone(&self.bytes));
        Self { name, sha256: self.sha256, bytes, view, loaded: OnceLock::new() }
    }

    /// Returns true for a DICOM object.
    pub fn is_dicom(&self) -> bool {
        matches!(detect_format(&self.bytes), Ok(FileFormat::Dicom))
    }

    /// Returns a hash of everything about the image that can change a verdict: its bytes and, for a
    /// DICOM object, the selected frame and window.
    pub fn key(&self) -> Digest {
        if self.view == DicomView::default() || !self.is_dicom() {
            return self.sha256;
        }
        dicom_key(&self.sha256, &self.view)
    }

    /// Decodes the image, or returns the pixels decoded before.
    ///
    /// # Errors
    ///
    /// If the image cannot be decoded. The message starts with the image's name.
    pub fn load(&self, limits: &ImageLimits) -> Result<Arc<LoadedImage>, String> {
        let load = || {
            let decoded = decode_image(&self.bytes, limits, &self.view)
                .map_err(|error| format!("{}: {error}", self.name))?;
            Ok(Arc::new(LoadedImage { name: self.name.clone(), sha256: self.sha256, decoded }))
        };
        self.loaded.get_or_init(load).clone()
    }
}

/// Returns the key of a DICOM object with this hash that is shown with this frame and window.
pub fn dicom_key(sha256: &Digest, view: &DicomView) -> Digest {
    if *view == DicomView::default() {
        return *sha256;
    }
    Digest::sha256(format!("{sha256} {}", view.key_text()).as_bytes())
}

/// Reads images and caches the most recent ones.
#[derive(Debug)]
pub struct ImageReader {
    root: PathBuf,
    limits: ImageLimits,
    view: DicomView,
    /// The most recent images, the newest last.
    recent: VecDeque<(ImageSource, Arc<EncodedImage>)>,
    outside: OutsideImages,
}

impl ImageReader {
    /// Creates a reader; image names are relative to the folder `root`.
    pub fn new(root: PathBuf, limits: ImageLimits) -> Self {
        Self {
            root,
            limits,
            view: DicomView::default(),
            recent: VecDeque::with_capacity(CACHED_IMAGES),
            outside: OutsideImages::accepted(),
        }
    }

    /// Counts or rejects images outside of the folder `root`.
    #[must_use]
    pub fn with_outside_images(self, outside: OutsideImages) -> Self {
        Self { outside, ..self }
    }

    /// Sets the frame and window of DICOM images.
    #[must_use]
    pub fn with_dicom_view(self, view: DicomView) -> Self {
        Self { view, ..self }
    }

    /// Returns the folder which image names are relative to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the size limits of images.
    pub fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    /// Returns the name of an image in records and messages.
    pub fn name(&self, source: &ImageSource) -> String {
        match source {
            ImageSource::File(path) => relative_path(path, &self.root),
            ImageSource::Bytes { name, .. } => name.clone(),
        }
    }

    /// Reads and hashes an image.
    ///
    /// # Errors
    ///
    /// If the image cannot be read. The message starts with the image's name.
    pub fn read(&mut self, source: &ImageSource) -> Result<Arc<EncodedImage>, String> {
        if let Some((_, image)) =
            self.recent.iter().find(|(cached, _)| is_same_source(cached, source))
        {
            return Ok(Arc::clone(image));
        }
        let name = self.name(source);
        let bytes = match source {
            ImageSource::File(path) => {
                let checked = self.outside.check(path, &self.root, &name);
                let read = checked.and_then(|()| read_image_file(path, &self.limits));
                read.map_err(|e| format!("{name}: {e}"))?
            }
            ImageSource::Bytes { bytes, .. } => Arc::clone(bytes),
        };
        let sha256 = Digest::sha256(&bytes);
        let image = Arc::new(EncodedImage {
            name,
            sha256,
            bytes,
            view: self.view.clone(),
            loaded: OnceLock::new(),
        });
        self.recent.push_back((source.clone(), Arc::clone(&image)));
        let size = |recent: &VecDeque<(ImageSource, Arc<EncodedImage>)>| {
            recent.iter().map(|(_, image)| image.memory_bytes()).sum::<usize>()
        };
        while self.recent.len() > CACHED_IMAGES
            || (self.recent.len() > 1 && size(&self.recent) > CACHED_BYTES)
        {
            self.recent.pop_front();
        }
        Ok(image)
    }

    /// Reads and decodes an image.
    ///
    /// # Errors
    ///
    /// If the image cannot be read or decoded. The message starts with the image's name.
    pub fn load(&mut self, source: &ImageSource) -> Result<Arc<LoadedImage>, String> {
        let limits = self.limits;
        self.read(source)?.load(&limits)
    }
}

/// Encodes an image as PNG.
///
/// # Errors
/// If the encoder fails.
pub fn encode_png(image: &DecodedImage) -> image::ImageResult<Vec<u8>> {
    let (width, height) = (image.width() as u32, image.height() as u32);
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes).write_image(
        image.data(),
        width,
        height,
        ExtendedColorType::Rgb8,
    )?;
    Ok(bytes)
}

/// Returns a path relative to a folder, with `/` as separator; the path itself if it is not in the
/// folder.
pub fn relative_path(path: &Path, root: &Path) -> String {
    let original = path;
    let strip_root = |path: &Path, root: &Path| path.strip_prefix(root).ok().map(Path::to_owned);
    // One path may be absolute and the other relative to the working folder.
    let strip_absolute =
        || strip_root(&std::path::absolute(path).ok()?, &std::path::absolute(root).ok()?);
    let path = strip_root(path, root).or_else(strip_absolute);
    let path = path.as_deref().unwrap_or(original);
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/").replace("//", "/")
}

/// Returns true if two sources are the same image, without comparing embedded bytes.
fn is_same_source(a: &ImageSource, b: &ImageSource) -> bool {
    match (a, b) {
        (ImageSource::File(a), ImageSource::File(b)) => a == b,
        (ImageSource::Bytes { bytes: a, .. }, ImageSource::Bytes { bytes: b, .. }) => {
            Arc::ptr_eq(a, b)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png_bytes() -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::GrayImage::new(2, 1).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn image_is_read_and_decoded_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images/a.png");
        std::fs::create_dir_all(dir.path().join("images")).unwrap();
        std::fs::write(&path, png_bytes()).unwrap();
        let mut images = ImageReader::new(dir.path().to_owned(), ImageLimits::default());
        let source = ImageSource::File(path.clone());
        let first = images.read(&source).unwrap();
        std::fs::remove_file(&path).unwrap();
        let again = images.read(&source).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let limits = ImageLimits::default();
        let loaded = first.load(&limits).unwrap();
        assert!(Arc::ptr_eq(&loaded, &again.load(&limits).unwrap()));
        assert_eq!((loaded.name.as_str(), loaded.pixels()), ("images/a.png", 2));
        assert_eq!(loaded.sha256, Digest::sha256(&png_bytes()));
    }

    #[test]
    fn read_errors_start_with_image_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.png"), b"text").unwrap();
        let mut images = ImageReader::new(dir.path().to_owned(), ImageLimits::default());
        let mut error = |name: &str| {
            let source = ImageSource::File(dir.path().join(name));
            let limits = *images.limits();
            images.read(&source).and_then(|image| image.load(&limits)).unwrap_err()
        };
        let absent = error("a.png");
        assert!(absent.starts_with("a.png: no such file\nhint: "), "{absent}");
        assert!(error("b.png").starts_with("b.png: unknown image format"), "{}", error("b.png"));
        assert!(error("").contains("expected an image file, found a folder"), "{}", error(""));
        std::fs::write(dir.path().join("c.png"), png_bytes()).unwrap();
        let mut images =
            ImageReader::new(dir.path().to_owned(), ImageLimits { bytes: 10, pixels: 1 });
        let source = ImageSource::File(dir.path().join("c.png"));
        assert!(images.read(&source).unwrap_err().contains("the limit is 10"));
    }

    #[test]
    fn cache_size_is_limited() {
        let mut images = ImageReader::new(PathBuf::new(), ImageLimits::default());
        let embedded = |n: u8| ImageSource::Bytes { name: n.to_string(), bytes: vec![n].into() };
        let sources: Vec<_> = (0..20).map(embedded).collect();
        for source in &sources {
            images.read(source).unwrap();
        }
        assert_eq!(images.recent.len(), CACHED_IMAGES);
    }
}

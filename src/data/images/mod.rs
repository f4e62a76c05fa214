//! Images of cases: read, hashed and decoded, the last few kept for the questions that follow.
//!
//! Data sets ask several questions in a row about one image. Reading and hashing it is needed for
//! every key; decoding only when the judge is asked, so it happens then, and once.

pub(crate) mod derived;
pub mod image_cluster;

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use acem3_vision::{DecodeError, DecodedImage, Format, Limits, View, decode_view, detect_format};

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

use crate::data::cases::ImageSource;
use crate::support::digest::Digest;
use crate::support::files::regular_file;

/// How many images are kept.
const KEPT: usize = 4;

/// An image as the judge gets it.
#[derive(Debug)]
pub struct LoadedImage {
    /// The path from the folder of the source, or the name it bears in a data set.
    pub name: String,
    /// The hash of its encoded bytes.
    pub sha256: Digest,
    /// Its pixels.
    pub decoded: DecodedImage,
}

/// An image whose bytes were read. It is decoded when it is first asked for.
#[derive(Debug)]
pub struct EncodedImage {
    /// The path from the folder of the source, or the name it bears in a data set.
    pub name: String,
    /// The hash of its bytes.
    pub sha256: Digest,
    bytes: Arc<[u8]>,
    view: View,
    loaded: OnceLock<Result<Arc<LoadedImage>, String>>,
}

impl LoadedImage {
    /// How many pixels it has.
    pub fn pixels(&self) -> u64 {
        self.decoded.width() as u64 * self.decoded.height() as u64
    }
}

impl EncodedImage {
    /// Its encoded bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it is a DICOM object.
    pub fn is_dicom(&self) -> bool {
        matches!(detect_format(&self.bytes), Ok(Format::Dicom))
    }

    /// The digest of all of it that can move a verdict: its bytes, and of a DICOM object the frame and
    /// window that were asked for, if they were.
    pub fn key(&self) -> Digest {
        if self.view == View::default() || !self.is_dicom() {
            return self.sha256;
        }
        Digest::of(format!("{} {:?}", self.sha256, self.view).as_bytes())
    }

    /// Its pixels.
    ///
    /// # Errors
    ///
    /// What is wrong with the image, led by its name.
    pub fn load(&self, limits: &Limits) -> Result<Arc<LoadedImage>, String> {
        let load = || {
            let decoded = decode_view(&self.bytes, limits, &self.view)
                .map_err(|error| format!("{}: {error}", self.name))?;
            Ok(Arc::new(LoadedImage {
                name: self.name.clone(),
                sha256: self.sha256,
                decoded,
            }))
        };
        self.loaded.get_or_init(load).clone()
    }
}

/// Reads images, and keeps the last few.
#[derive(Debug)]
pub struct ImageReader {
    root: PathBuf,
    limits: Limits,
    view: View,
    recent: VecDeque<(ImageSource, Arc<EncodedImage>)>,
}

impl ImageReader {
    /// Images of a source; names are told from the folder `root`.
    pub fn new(root: PathBuf, limits: Limits) -> Self {
        Self {
            root,
            limits,
            view: View::default(),
            recent: VecDeque::with_capacity(KEPT),
        }
    }

    /// The same, with DICOM images looked at in this way.
    #[must_use]
    pub fn viewed(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// What an image may be at most.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How an image is called in records and messages.
    pub fn name(&self, source: &ImageSource) -> String {
        match source {
            ImageSource::File(path) => relative(path, &self.root),
            ImageSource::Bytes { name, .. } => name.clone(),
        }
    }

    /// The bytes of an image and their hash.
    ///
    /// # Errors
    ///
    /// Why it could not be read, led by its name.
    pub fn read(&mut self, source: &ImageSource) -> Result<Arc<EncodedImage>, String> {
        if let Some((_, image)) = self.recent.iter().find(|(kept, _)| is_same(kept, source)) {
            return Ok(Arc::clone(image));
        }
        let name = self.name(source);
        let bytes = match source {
            ImageSource::File(path) => self.bytes_of(path).map_err(|e| format!("{name}: {e}"))?,
            ImageSource::Bytes { bytes, .. } => Arc::clone(bytes),
        };
        let sha256 = Digest::of(&bytes);
        let image = Arc::new(EncodedImage {
            name,
            sha256,
            bytes,
            view: self.view.clone(),
            loaded: OnceLock::new(),
        });
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back((source.clone(), Arc::clone(&image)));
        Ok(image)
    }

    /// The pixels of an image.
    ///
    /// # Errors
    ///
    /// Why it could not be read or decoded, led by its name.
    pub fn load(&mut self, source: &ImageSource) -> Result<Arc<LoadedImage>, String> {
        let limits = self.limits;
        self.read(source)?.load(&limits)
    }

    fn bytes_of(&self, path: &Path) -> Result<Arc<[u8]>, String> {
        let told = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                "no such file\nhint: image paths are relative to the file that names them"
                    .to_owned()
            }
            io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
            io::ErrorKind::InvalidInput => error.to_string(),
            io::ErrorKind::IsADirectory => {
                "expected an image, got a folder\nhint: name one file for each case".to_owned()
            }
            _ => format!("cannot be read: {error}"),
        };
        let file = regular_file::open(path).map_err(told)?;
        let (length, most) = (
            file.metadata().map_err(told)?.len(),
            self.limits.bytes as u64,
        );
        if length > most {
            let got = usize::try_from(length).unwrap_or(usize::MAX);
            let limit = self.limits.bytes;
            return Err(DecodeError::TooManyBytes { got, limit }.to_string());
        }
        let mut bytes = Vec::new();
        // The file may grow meanwhile, or be none that has a length.
        file.take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(told)?;
        Ok(bytes.into())
    }
}

/// The pixels of an image as a PNG.
///
/// # Errors
/// Where the encoder refuses them.
pub fn png(image: &DecodedImage) -> image::ImageResult<Vec<u8>> {
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

/// The path from a folder, with `/` between its parts; the path itself if it lies elsewhere.
pub fn relative(path: &Path, root: &Path) -> String {
    let typed = path;
    let inside = |path: &Path, root: &Path| path.strip_prefix(root).ok().map(Path::to_owned);
    // One of them may be typed from the working folder, the other from the root of the disk.
    let whole = || {
        inside(
            &std::path::absolute(path).ok()?,
            &std::path::absolute(root).ok()?,
        )
    };
    let path = inside(path, root).or_else(whole);
    let path = path.as_deref().unwrap_or(typed);
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/").replace("//", "/")
}

/// Whether two sources are one image, without looking at embedded bytes.
fn is_same(a: &ImageSource, b: &ImageSource) -> bool {
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

    fn png() -> Vec<u8> {
        let mut bytes = io::Cursor::new(Vec::new());
        image::GrayImage::new(2, 1)
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        bytes.into_inner()
    }

    #[test]
    fn an_image_is_read_and_decoded_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images/a.png");
        std::fs::create_dir_all(dir.path().join("images")).unwrap();
        std::fs::write(&path, png()).unwrap();
        let mut images = ImageReader::new(dir.path().to_owned(), Limits::default());
        let source = ImageSource::File(path.clone());
        let first = images.read(&source).unwrap();
        std::fs::remove_file(&path).unwrap();
        let again = images.read(&source).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let limits = Limits::default();
        let loaded = first.load(&limits).unwrap();
        assert!(Arc::ptr_eq(&loaded, &again.load(&limits).unwrap()));
        assert_eq!((loaded.name.as_str(), loaded.pixels()), ("images/a.png", 2));
        assert_eq!(loaded.sha256, Digest::of(&png()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.png"), b"text").unwrap();
        let mut images = ImageReader::new(dir.path().to_owned(), Limits::default());
        let mut error = |name: &str| {
            let source = ImageSource::File(dir.path().join(name));
            let limits = *images.limits();
            images
                .read(&source)
                .and_then(|image| image.load(&limits))
                .unwrap_err()
        };
        let absent = error("a.png");
        assert!(
            absent.starts_with("a.png: no such file\nhint: "),
            "{absent}"
        );
        assert!(
            error("b.png").starts_with("b.png: unknown image format"),
            "{}",
            error("b.png")
        );
        assert!(
            error("").contains("expected an image, got a folder"),
            "{}",
            error("")
        );
        std::fs::write(dir.path().join("c.png"), png()).unwrap();
        let mut images = ImageReader::new(
            dir.path().to_owned(),
            Limits {
                bytes: 10,
                pixels: 1,
            },
        );
        let source = ImageSource::File(dir.path().join("c.png"));
        assert!(
            images
                .read(&source)
                .unwrap_err()
                .contains("the limit is 10")
        );
    }

    #[test]
    fn only_the_last_few_are_kept() {
        let mut images = ImageReader::new(PathBuf::new(), Limits::default());
        let embedded = |n: u8| ImageSource::Bytes {
            name: n.to_string(),
            bytes: vec![n].into(),
        };
        let sources: Vec<_> = (0..20).map(embedded).collect();
        for source in &sources {
            images.read(source).unwrap();
        }
        assert_eq!(images.recent.len(), KEPT);
    }
}

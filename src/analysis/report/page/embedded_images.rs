//! Images embedded in the page. Records contain the file name and the hash of an image. The image
//! is embedded only if a file with this name has this hash.
//!
//! Images are re-encoded from their pixels, which removes all metadata (patient, location, camera).
//! Text that is burnt into the pixels remains.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_vision::{
    AppliedView, DicomView, DicomWindow, FileFormat, ImageLimits, WindowSource, detect_format,
};
use anyhow::{Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, RgbImage};
use rayon::prelude::*;

use crate::data::cases;
use crate::data::cases::{ImageSource, SourceOptions};
use crate::data::images::ImageReader;
use crate::data::images::decoder::decode_image;
use crate::data::images::outside_images::{OUTSIDE_REASON, is_outside};
use crate::judging::run::record::ImageInfo;
use crate::support::digest::Digest;

/// Thumbnails of a page with few images.
const LARGE: Thumbnail = Thumbnail { side: 384, quality: 82 };
/// Thumbnails of a page with more images than [`MAX_LARGE`], so that it opens quickly.
const SMALL: Thumbnail = Thumbnail { side: 224, quality: 65 };
/// Maximum number of large thumbnails.
const MAX_LARGE: usize = 300;
/// Maximum number of images in memory.
const IMAGES_PER_BATCH: usize = 64;
/// Reason for images over the size limit.
const LIMIT_REACHED: &str = "the size limit for images is reached";

/// Reason for images without a file.
const NOT_FOUND: &str = "file not found";

/// Size of the images embedded in the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Thumbs {
    /// No images
    None,
    /// Thumbnails (JPEG, longest side 384 pixels, or 224 if there are more than 300), at most 48 MiB
    /// in total
    #[default]
    Small,
    /// Full resolution (PNG), at most 512 MiB in total
    Full,
}

/// Size of a thumbnail.
#[derive(Clone, Copy, Debug)]
struct Thumbnail {
    /// Longest side, in pixels.
    side: u32,
    /// JPEG quality, out of 100.
    quality: u8,
}

/// Folder of the images.
#[derive(Clone, Debug)]
pub struct ImageFolder {
    /// The folder, or a Parquet file.
    pub path: PathBuf,
    /// True to embed images outside of the folder too.
    pub allow_outside: bool,
}

/// Images embedded in a page.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedImages {
    /// Data URIs.
    pub uris: Vec<String>,
    /// Index of each entry's image in `uris`.
    pub indices: Vec<Option<usize>>,
    /// Reasons for missing images, with the number of images each.
    pub missing: Vec<(String, usize)>,
    /// Name of the first image without a file.
    pub first_not_found: Option<String>,
}

/// Key of an image: the hash of its file and, for DICOM, the frame and window.
type ImageKey = (Digest, String);

impl Thumbs {
    /// Returns the maximum total size of the data URIs, in bytes.
    fn max_bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Small => 48 << 20,
            Self::Full => 512 << 20,
        }
    }
}

impl EmbeddedImages {
    /// Embeds the images of entries, read from a folder or from Parquet files in it.
    pub fn new(images: &[Option<ImageInfo>], folder: &ImageFolder, thumbs: Thumbs) -> Self {
        let mut embedded = Self { indices: vec![None; images.len()], ..Self::default() };
        if thumbs == Thumbs::None {
            return embedded;
        }
        let mut known: HashMap<ImageKey, usize> = HashMap::new();
        let mut wanted: Vec<(&ImageInfo, Digest)> = Vec::new();
        let mut wanted_indices = vec![None; images.len()];
        for (wanted_index, image) in wanted_indices.iter_mut().zip(images) {
            let Some((image, hash)) = image.as_ref().and_then(|i| Some((i, i.sha256?))) else {
                continue;
            };
            let next = wanted.len();
            let index = *known.entry((hash, view_key(image))).or_insert(next);
            if index == next {
                wanted.push((image, hash));
            }
            *wanted_index = Some(index);
        }
        let parquet = ParquetImages::find(&folder.path, &wanted);
        let mut uri_indices = Vec::with_capacity(wanted.len());
        let mut remaining = thumbs.max_bytes();
        let size = if wanted.len() > MAX_LARGE { SMALL } else { LARGE };
        let thumbnail = (thumbs == Thumbs::Small).then_some(size);
        for group in wanted.chunks(IMAGES_PER_BATCH) {
            let is_full = remaining == 0;
            let load = |(image, hash): &(&ImageInfo, Digest)| {
                if is_full {
                    return Err(LIMIT_REACHED.to_owned());
                }
                load_data_uri(image, *hash, folder, &parquet, thumbnail)
            };
            let uris: Vec<Result<String, String>> = group.par_iter().map(load).collect();
            for (uri, (image, _)) in uris.into_iter().zip(group) {
                if uri.as_ref().is_err_and(|reason| reason == NOT_FOUND) {
                    embedded.first_not_found.get_or_insert_with(|| image.name.clone());
                }
                uri_indices.push(embedded.embed(uri, &mut remaining));
            }
        }
        for (index, wanted_index) in embedded.indices.iter_mut().zip(wanted_indices) {
            *index = wanted_index.and_then(|i: usize| uri_indices.get(i).copied().flatten());
        }
        embedded
    }

    /// Stores an image if it fits the budget and returns its index. After the first one that does
    /// not fit, the budget is 0.
    fn embed(&mut self, uri: Result<String, String>, remaining: &mut usize) -> Option<usize> {
        match uri {
            Ok(uri) if uri.len() <= *remaining => {
                *remaining -= uri.len();
                self.uris.push(uri);
                Some(self.uris.len() - 1)
            }
            Ok(_) => {
                *remaining = 0;
                self.count_missing(LIMIT_REACHED);
                None
            }
            Err(reason) => {
                self.count_missing(&reason);
                None
            }
        }
    }

    fn count_missing(&mut self, reason: &str) {
        match self.missing.iter_mut().find(|(known, _)| known == reason) {
            Some((_, n)) => *n += 1,
            None => self.missing.push((reason.to_owned(), 1)),
        }
    }

    /// Returns the total size of the data URIs, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.uris.iter().map(String::len).sum()
    }
}

fn view_key(image: &ImageInfo) -> String {
    image.view.map_or_else(String::new, |view| format!("{view:?}"))
}

/// Reads one image and returns its data URI, or the reason why it is missing.
fn load_data_uri(
    image: &ImageInfo,
    hash: Digest,
    folder: &ImageFolder,
    parquet: &ParquetImages,
    thumbnail: Option<Thumbnail>,
) -> Result<String, String> {
    let encoded = |bytes: &[u8]| {
        encode_data_uri(bytes, image.view, thumbnail)
            .map_err(|_| "the file cannot be decoded".to_owned())
    };
    if let Some(bytes) = parquet.0.get(&hash) {
        return encoded(bytes);
    }
    let (root, path) = (&folder.path, folder.path.join(&image.name));
    if !folder.allow_outside && is_outside(&path, root) {
        return Err(OUTSIDE_REASON.to_owned());
    }
    let mut images = ImageReader::new(root.clone(), ImageLimits::default());
    let file = images.read(&ImageSource::File(path));
    let file = file.map_err(|_| NOT_FOUND.to_owned())?;
    if file.sha256 == hash {
        encoded(file.bytes())
    } else {
        Err("the file changed after judging".to_owned())
    }
}

/// Decodes the judged pixels and returns them as a data URI: a thumbnail, or all pixels.
fn encode_data_uri(
    bytes: &[u8],
    view: Option<AppliedView>,
    thumbnail: Option<Thumbnail>,
) -> Result<String> {
    let limits = ImageLimits::default();
    let frame = view.map(|view| view.frame);
    let decode = |window: DicomWindow| {
        decode_image(bytes, &limits, &DicomView { window, frame }).map_err(anyhow::Error::msg)
    };
    let mut decoded = decode(DicomWindow::File)?;
    let is_dicom = detect_format(bytes).is_ok_and(|format| format == FileFormat::Dicom);
    // The judge saw another DICOM window than the file's own: decode again with that window.
    if is_dicom && decoded.applied_view().copied() != view {
        let recorded = view.and_then(|view| view.window);
        let fixed = recorded.filter(|window| window.source != WindowSource::Auto);
        let range = fixed.and_then(|window| window.center.zip(window.width));
        let window = range.map_or(DicomWindow::Auto, |(center, width)| DicomWindow::CenterWidth {
            center,
            width,
        });
        decoded = decode(window)?;
    }
    let (width, height) = (decoded.width() as u32, decoded.height() as u32);
    let pixels = RgbImage::from_raw(width, height, decoded.data().to_vec());
    let pixels = pixels.ok_or_else(|| anyhow!("unexpected number of pixels"))?;
    let mut rgb = decoded.data().as_chunks::<3>().0.iter();
    let is_grey = rgb.all(|[r, g, b]| r == g && g == b);
    let mut output = DynamicImage::ImageRgb8(pixels);
    if let Some(Thumbnail { side, .. }) = thumbnail
        && width.max(height) > side
    {
        output = output.thumbnail(side, side);
    }
    if is_grey {
        output = DynamicImage::ImageLuma8(output.into_luma8());
    }
    let mut encoded = Vec::new();
    let format = if let Some(Thumbnail { quality, .. }) = thumbnail {
        output.write_with_encoder(JpegEncoder::new_with_quality(&mut encoded, quality))?;
        "jpeg"
    } else {
        output.write_with_encoder(PngEncoder::new(&mut encoded))?;
        "png"
    };
    Ok(format!("data:image/{format};base64,{}", STANDARD.encode(encoded)))
}

/// Images in Parquet files, by hash.
struct ParquetImages(HashMap<Digest, Arc<[u8]>>);

impl ParquetImages {
    /// Reads the wanted images from the Parquet files of a folder, or from `root` if it is a
    /// Parquet file.
    fn find(root: &Path, wanted: &[(&ImageInfo, Digest)]) -> Self {
        let mut images = HashMap::new();
        let hashes: HashSet<Digest> = wanted.iter().map(|(_, hash)| *hash).collect();
        for file in parquet_files(root) {
            let options = SourceOptions { min_responses: 0, ..SourceOptions::default() };
            let Ok(source) = cases::open(&file, &options) else {
                continue;
            };
            for entry in source.filter_map(Result::ok) {
                if let Some(ImageSource::Bytes { bytes, .. }) = entry.image {
                    let hash = Digest::sha256(&bytes);
                    if hashes.contains(&hash) {
                        images.insert(hash, bytes);
                    }
                }
            }
        }
        Self(images)
    }
}

/// Returns the Parquet files of a folder and its subfolder `data`, or `root` itself if it is a
/// Parquet file.
fn parquet_files(root: &Path) -> Vec<PathBuf> {
    let is_parquet = |path: &PathBuf| path.extension().is_some_and(|e| e == "parquet");
    if root.is_file() {
        return Some(root.to_owned()).filter(is_parquet).into_iter().collect();
    }
    let folders = [root.to_owned(), root.join("data")];
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok());
    let mut files: Vec<PathBuf> =
        entries.flatten().filter_map(|entry| Some(entry.ok()?.path())).filter(is_parquet).collect();
    files.sort();
    files
}

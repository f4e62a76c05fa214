//! Images embedded in the page. They are found by the names in the records; an image is embedded only if the hash
//! of its file matches the record.
//!
//! Images are re-encoded from their pixels, which removes all metadata (patient, location, camera). Text that is
//! burnt into the pixels remains.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_vision::{Format, Limits, Shown, View, Window, WindowSource, decode_view, detect_format};
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
use crate::judging::run::record::ImageInfo;
use crate::support::digest::Digest;

/// Longest side of a thumbnail, in pixels.
const SIDE: u32 = 384;
/// JPEG quality of a thumbnail, out of 100.
const QUALITY: u8 = 82;
/// Maximum number of images in memory at once.
const GROUP: usize = 64;
/// Reason for images over the size limit.
const FULL: &str = "the size limit for images is reached";

/// Size of the images embedded in the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Thumbs {
    /// No images
    None,
    /// Thumbnails (JPEG, longest side 384 pixels), 48 MiB in total
    #[default]
    Small,
    /// Full resolution (PNG), 512 MiB in total
    Full,
}

/// Images embedded in a page.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedImages {
    /// Data URIs.
    pub uris: Vec<String>,
    /// Index of each entry's image in `uris`.
    pub places: Vec<Option<usize>>,
    /// Reasons for missing images, with the number of images each.
    pub missing: Vec<(String, usize)>,
}

/// Key of an image: the hash of its file and, for DICOM, the frame and window.
type ImageKey = (Digest, String);

impl Thumbs {
    /// Returns the maximum total size of the data URIs, in bytes.
    fn budget(self) -> usize {
        match self {
            Self::None => 0,
            Self::Small => 48 << 20,
            Self::Full => 512 << 20,
        }
    }
}

impl EmbeddedImages {
    /// Embeds the images of entries, read from the folder `root` or from Parquet files in it.
    pub fn of(stamps: &[Option<ImageInfo>], root: &Path, thumbs: Thumbs) -> Self {
        let mut pictures = Self {
            places: vec![None; stamps.len()],
            ..Self::default()
        };
        if thumbs == Thumbs::None {
            return pictures;
        }
        let mut numbers: HashMap<ImageKey, usize> = HashMap::new();
        let mut wanted: Vec<(&ImageInfo, Digest)> = Vec::new();
        let mut places = vec![None; stamps.len()];
        for (place, stamp) in places.iter_mut().zip(stamps) {
            let Some((stamp, hash)) = stamp.as_ref().and_then(|s| Some((s, s.sha256?))) else {
                continue;
            };
            let next = wanted.len();
            let number = *numbers.entry((hash, view_key(stamp))).or_insert(next);
            if number == next {
                wanted.push((stamp, hash));
            }
            *place = Some(number);
        }
        let embedded = ParquetImages::find(root, &wanted);
        let mut kept = Vec::with_capacity(wanted.len());
        let mut left = thumbs.budget();
        for group in wanted.chunks(GROUP) {
            let full = left == 0;
            let make = |(stamp, hash): &(&ImageInfo, Digest)| {
                if full {
                    return Err(FULL.to_owned());
                }
                picture(stamp, *hash, (root, &embedded), thumbs)
            };
            let made: Vec<Result<String, String>> = group.par_iter().map(make).collect();
            for made in made {
                kept.push(pictures.keep(made, &mut left));
            }
        }
        for (place, number) in pictures.places.iter_mut().zip(places) {
            *place = number.and_then(|number: usize| kept.get(number).copied().flatten());
        }
        pictures
    }

    /// Stores an image if it fits the budget and returns its index. After the first one that does not fit, the
    /// budget is 0.
    fn keep(&mut self, made: Result<String, String>, left: &mut usize) -> Option<usize> {
        match made {
            Ok(uri) if uri.len() <= *left => {
                *left -= uri.len();
                self.uris.push(uri);
                Some(self.uris.len() - 1)
            }
            Ok(_) => {
                *left = 0;
                self.miss(FULL);
                None
            }
            Err(reason) => {
                self.miss(&reason);
                None
            }
        }
    }

    fn miss(&mut self, reason: &str) {
        match self.missing.iter_mut().find(|(known, _)| known == reason) {
            Some((_, n)) => *n += 1,
            None => self.missing.push((reason.to_owned(), 1)),
        }
    }

    /// Returns the total size of the data URIs, in bytes.
    pub fn bytes(&self) -> usize {
        self.uris.iter().map(String::len).sum()
    }
}

fn view_key(stamp: &ImageInfo) -> String {
    stamp
        .view
        .map_or_else(String::new, |view| format!("{view:?}"))
}

/// Reads one image and returns its data URI, or the reason why it is missing.
fn picture(
    stamp: &ImageInfo,
    hash: Digest,
    (root, embedded): (&Path, &ParquetImages),
    thumbs: Thumbs,
) -> Result<String, String> {
    let encoded = |bytes: &[u8]| {
        encode(bytes, stamp.view, thumbs).map_err(|_| "the file cannot be decoded".to_owned())
    };
    if let Some(bytes) = embedded.0.get(&hash) {
        return encoded(bytes);
    }
    let mut images = ImageReader::new(root.to_owned(), Limits::default());
    let read = images.read(&ImageSource::File(root.join(&stamp.name)));
    let read = read.map_err(|_| "file not found".to_owned())?;
    if read.sha256 == hash {
        encoded(read.bytes())
    } else {
        Err("the file changed after judging".to_owned())
    }
}

/// Decodes the judged pixels and returns them as a data URI.
fn encode(bytes: &[u8], shown: Option<Shown>, thumbs: Thumbs) -> Result<String> {
    let limits = Limits::default();
    let frame = shown.map(|shown| shown.frame);
    let mut decoded = decode_view(
        bytes,
        &limits,
        &View {
            window: Window::File,
            frame,
        },
    )?;
    let dicom = detect_format(bytes).is_ok_and(|format| format == Format::Dicom);
    if dicom && decoded.shown().copied() != shown {
        let used = shown.and_then(|shown| shown.window);
        let range = used.filter(|window| window.source != WindowSource::Auto);
        let given = range.and_then(|window| window.center.zip(window.width));
        let window = given.map_or(Window::Auto, |(center, width)| Window::Of { center, width });
        decoded = decode_view(bytes, &limits, &View { window, frame })?;
    }
    let (width, height) = (decoded.width() as u32, decoded.height() as u32);
    let pixels = RgbImage::from_raw(width, height, decoded.data().to_vec());
    let pixels = pixels.ok_or_else(|| anyhow!("unexpected number of pixels"))?;
    let grey = decoded.data().as_chunks::<3>().0.iter();
    let grey = grey.into_iter().all(|[r, g, b]| r == g && g == b);
    let small = thumbs == Thumbs::Small && width.max(height) > SIDE;
    let mut whole = DynamicImage::ImageRgb8(pixels);
    if small {
        whole = whole.thumbnail(SIDE, SIDE);
    }
    if grey {
        whole = DynamicImage::ImageLuma8(whole.into_luma8());
    }
    let mut encoded = Vec::new();
    let kind = if thumbs == Thumbs::Full {
        whole.write_with_encoder(PngEncoder::new(&mut encoded))?;
        "png"
    } else {
        whole.write_with_encoder(JpegEncoder::new_with_quality(&mut encoded, QUALITY))?;
        "jpeg"
    };
    Ok(format!(
        "data:image/{kind};base64,{}",
        STANDARD.encode(encoded)
    ))
}

/// Images in Parquet files, by hash.
struct ParquetImages(HashMap<Digest, Arc<[u8]>>);

impl ParquetImages {
    /// Reads the wanted images from the Parquet files of a folder, or from `root` if it is a Parquet file.
    fn find(root: &Path, wanted: &[(&ImageInfo, Digest)]) -> Self {
        let mut found = HashMap::new();
        let hashes: HashSet<Digest> = wanted.iter().map(|(_, hash)| *hash).collect();
        for file in parquet_files(root) {
            let options = SourceOptions {
                min_responses: 0,
                ..SourceOptions::default()
            };
            let Ok(source) = cases::open(&file, &options) else {
                continue;
            };
            for entry in source.filter_map(Result::ok) {
                if let Some(ImageSource::Bytes { bytes, .. }) = entry.image {
                    let hash = Digest::of(&bytes);
                    if hashes.contains(&hash) {
                        found.insert(hash, bytes);
                    }
                }
            }
        }
        Self(found)
    }
}

/// Returns the Parquet files of a folder and its subfolder `data`, or `root` itself if it is a Parquet file.
fn parquet_files(root: &Path) -> Vec<PathBuf> {
    let is_parquet = |path: &PathBuf| path.extension().is_some_and(|e| e == "parquet");
    if root.is_file() {
        return Some(root.to_owned())
            .filter(is_parquet)
            .into_iter()
            .collect();
    }
    let folders = [root.to_owned(), root.join("data")];
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok());
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_parquet)
        .collect();
    files.sort();
    files
}

//! The images of a data folder: one file per image, named after its hash.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use acem3_vision::{FileFormat, ImageLimits, detect_format};
use anyhow::{Context as _, Result};

use crate::data::images::{EncodedImage, encode_png};
use crate::support::files::atomic_file::write_atomic;
use crate::support::files::folder::create_folder;

/// Folder of the images, next to the lines that name them.
const IMAGES: &str = "images";

/// Images of a data folder.
pub(super) struct SavedImages {
    folder: PathBuf,
    saved: BTreeSet<String>,
}

impl SavedImages {
    /// Creates the images of a folder, without writing one.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), saved: BTreeSet::new() }
    }

    /// Returns the number of images.
    pub(super) fn count(&self) -> usize {
        self.saved.len()
    }

    /// Writes an image unless the folder has it, and returns its path relative to the folder. JPEG and PNG files
    /// are copied, others are written as PNG.
    ///
    /// # Errors
    ///
    /// The image cannot be decoded or written.
    pub(super) fn save(&mut self, image: &EncodedImage) -> Result<String> {
        let format = detect_format(image.bytes());
        let extension = if matches!(format, Ok(FileFormat::Jpeg)) { "jpg" } else { "png" };
        let name = format!("{IMAGES}/{}.{extension}", image.key().short_hex());
        if self.saved.contains(&name) {
            return Ok(name);
        }
        // Decoded in any case: an image that cannot be decoded cannot be trained on.
        let loaded = image.load(&ImageLimits::default()).map_err(anyhow::Error::msg)?;
        let path = self.folder.join(&name);
        let png;
        let bytes = if matches!(format, Ok(FileFormat::Jpeg | FileFormat::Png)) {
            image.bytes()
        } else {
            png = encode_png(&loaded.decoded).with_context(|| image.name.clone())?;
            &png
        };
        // A file of an earlier conversion may be damaged.
        if !fs::read(&path).is_ok_and(|found| found == bytes) {
            create_folder(&self.folder.join(IMAGES))?;
            write_atomic(&path, bytes)?;
        }
        self.saved.insert(name.clone());
        Ok(name)
    }
}

//! The images that a folder of preference pairs takes over from its input.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use acem3_vision::{DicomView, ImageLimits};
use anyhow::{Result, anyhow};

use super::preference_folder::COPIED_PREFIX;
use crate::data::images::EncodedImage;
use crate::data::images::decoder::decode_image;
use crate::data::images::image_file::read_image_file;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;

/// Copies images into a folder, under names that contain their hash.
pub(crate) struct CopiedImages {
    folder: PathBuf,
    copied: BTreeSet<String>,
}

impl CopiedImages {
    /// Prepares a folder, without copying an image.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), copied: BTreeSet::new() }
    }

    /// Copies an image file, unless it was copied before. Returns its name in the folder.
    ///
    /// # Errors
    /// If the file cannot be read or is no image, or the copy cannot be written.
    pub(crate) fn copy_file(&mut self, path: &Path) -> Result<String> {
        let bytes = read_image_file(path, &ImageLimits::default())
            .map_err(|problem| anyhow!("{}: {problem}", path.display()))?;
        let name = copy_name(&Digest::sha256(&bytes), path);
        if !self.copied.contains(&name) {
            decode_image(&bytes, &ImageLimits::default(), &DicomView::default())
                .map_err(|problem| anyhow!("{}: {problem}", path.display()))?;
            self.write(&name, &bytes)?;
        }
        Ok(name)
    }

    /// Copies an image that was read before, unless it was copied. Returns its name in the folder.
    ///
    /// # Errors
    /// If it cannot be decoded, or the copy cannot be written.
    pub(crate) fn copy_encoded(&mut self, image: &EncodedImage) -> Result<String> {
        let name = copy_name(&image.sha256, Path::new(&image.name));
        if !self.copied.contains(&name) {
            image.load(&ImageLimits::default()).map_err(anyhow::Error::msg)?;
            self.write(&name, image.bytes())?;
        }
        Ok(name)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        atomic_file::write_atomic(&self.folder.join(name), bytes)?;
        self.copied.insert(name.to_owned());
        Ok(())
    }
}

/// Returns the name of a copy.
fn copy_name(sha256: &Digest, source: &Path) -> String {
    let digest = sha256.to_string();
    let extension = source.extension().and_then(|extension| extension.to_str());
    let extension = extension.map_or(String::new(), |e| format!(".{}", e.to_lowercase()));
    format!("images/{COPIED_PREFIX}{}{extension}", digest.get(..16).unwrap_or(&digest))
}

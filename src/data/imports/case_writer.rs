//! Writes cases as `cases.jsonl`, and embedded images beside it.

use std::fs;
use std::path::{Path, PathBuf};

use acem3_vision::{FileFormat, detect_format};
use anyhow::{Context as _, Result};

use crate::data::cases::{Case, CaseLine, ImageSource};
use crate::support::digest::Digest;
use crate::support::files::atomic_file::write_atomic;
use crate::support::files::file_form::{FileForm, has_json_line};

/// The form of the written file.
pub const CASES_FORM: FileForm = FileForm {
    name: "a file of cases",
    recognise: |file| has_json_line(file, &["id", "question"]),
};
/// Folder of embedded images, next to the file of cases.
const IMAGE_FOLDER: &str = "images";

/// Formats cases as lines and writes their embedded images.
#[derive(Debug)]
pub struct CaseWriter {
    folder: PathBuf,
    /// Number of images that were written.
    pub images: u64,
}

impl CaseWriter {
    /// Creates a writer of cases for a file.
    pub fn new(out: &Path) -> Self {
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new(".")).to_owned();
        Self { folder, images: 0 }
    }

    /// Returns the line of a case, after writing its embedded image.
    ///
    /// # Errors
    /// The image cannot be written.
    pub fn write_case(&mut self, case: Case) -> Result<String> {
        let image = case.image.as_ref().map(|image| self.image_path(image)).transpose()?;
        let line = CaseLine {
            id: case.id,
            image,
            question: case.question,
            responses: case.responses,
            reference: case.reference,
            labels: case.labels,
            meta: case.meta,
        };
        Ok(serde_json::to_string(&line).context("cannot write a case")? + "\n")
    }

    /// Returns the path of an image relative to the file of cases, or an absolute path for a file
    /// outside of its folder.
    fn image_path(&mut self, image: &ImageSource) -> Result<String> {
        match image {
            ImageSource::File(path) => {
                let path = std::path::absolute(path)?;
                let path = path.canonicalize().unwrap_or(path);
                let folder = std::path::absolute(&self.folder)?;
                let folder = folder.canonicalize().unwrap_or(folder);
                let relative = path.strip_prefix(&folder).unwrap_or(&path);
                Ok(relative.to_string_lossy().into_owned())
            }
            ImageSource::Bytes { bytes, .. } => {
                let digest = Digest::sha256(bytes).to_string();
                let name = digest.get(..16).unwrap_or(&digest);
                let name = format!("{IMAGE_FOLDER}/{name}.{}", extension(bytes));
                let path = self.folder.join(&name);
                if !path.exists() {
                    let folder = self.folder.join(IMAGE_FOLDER);
                    fs::create_dir_all(&folder)
                        .with_context(|| format!("{} cannot be created", folder.display()))?;
                    write_atomic(&path, bytes)?;
                    self.images += 1;
                }
                Ok(name)
            }
        }
    }
}

fn extension(bytes: &[u8]) -> &'static str {
    match detect_format(bytes) {
        Ok(FileFormat::Jpeg) => "jpg",
        Ok(FileFormat::Png) => "png",
        Ok(FileFormat::Bmp) => "bmp",
        Ok(FileFormat::Tiff) => "tiff",
        Ok(FileFormat::WebP) => "webp",
        Ok(FileFormat::Dicom) => "dcm",
        _ => "bin",
    }
}

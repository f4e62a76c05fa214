//! The source of the cases of a run, as its manifest states it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::cases::{SourceKind, base_folder};
use crate::support::digest::Digest;

/// Source of the cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Path as given on the command line.
    pub path: String,
    /// Detected layout.
    pub kind: String,
    /// Absolute path of the cases where the run was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absolute: Option<String>,
    /// Absolute path of the folder, or the Parquet file, in which the image names of the records
    /// are, where the run was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<String>,
    /// SHA-256 of all cases and input problems, in their order and without the bytes of images;
    /// absent until all of them are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

impl SourceInfo {
    /// Returns true if the images may be inside the files of the source.
    pub fn may_embed_images(&self) -> bool {
        self.kind == "import"
    }

    /// Describes a source.
    pub fn new(path: &Path, kind: SourceKind) -> Self {
        let kind = serde_json::to_value(kind).ok();
        let kind = kind.as_ref().and_then(|kind| kind.as_str());
        let absolute = std::path::absolute(path).ok();
        Self {
            path: path.display().to_string(),
            kind: kind.unwrap_or_default().to_owned(),
            images: absolute.as_ref().map(|path| image_root(path).display().to_string()),
            absolute: absolute.map(|path| path.display().to_string()),
            digest: None,
        }
    }

    /// Returns the path of the cases: the absolute one, or the one on the command line.
    pub fn cases_path(&self) -> PathBuf {
        PathBuf::from(self.absolute.as_ref().unwrap_or(&self.path))
    }

    /// Returns the folder or Parquet file of the images. If the recorded absolute path no longer exists, it is
    /// found from the path on the command line.
    pub fn find_images(&self) -> PathBuf {
        let known = self.images.as_ref().map(PathBuf::from).filter(|path| path.exists());
        known.unwrap_or_else(|| image_root(Path::new(&self.path)))
    }
}

/// Returns the folder of the images of a source, or the source if it is a Parquet file.
fn image_root(source: &Path) -> PathBuf {
    if source.extension().is_some_and(|extension| extension == "parquet") {
        return source.to_owned();
    }
    base_folder(source)
}

//! Images of sampled records, found by name and hash.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_vision::{DicomView, ImageLimits};
use anyhow::Result;

use crate::data::cases;
use crate::data::cases::{ImageSource, SourceKind, SourceOptions};
use crate::data::images::{EncodedImage, ImageReader, LoadedImage};
use crate::judging::run::record::record_reader::open_records;
use crate::judging::run::record::{ImageInfo, Record};
use crate::support::digest::Digest;

/// Reader of the images of sampled records.
pub struct SampledImages {
    root: PathBuf,
    /// Names of the images that are files.
    files: BTreeSet<String>,
    images: ImageReader,
    /// Images that are embedded in the source, by hash.
    embedded: HashMap<Digest, Arc<[u8]>>,
}

impl SampledImages {
    /// Creates the reader. Image names are relative to the folder of the source, which may contain
    /// the images itself.
    pub fn new(source: &Path, view: DicomView, sample: &[(u64, Record)]) -> Self {
        let infos = sample.iter().filter_map(|(_, record)| record.subject.image.as_ref());
        Self::for_images(source, view, infos)
    }

    /// Creates the reader for these images.
    pub fn for_images<'a>(
        source: &Path,
        view: DicomView,
        infos: impl Iterator<Item = &'a ImageInfo>,
    ) -> Self {
        let root = cases::base_folder(source);
        let images = ImageReader::new(root.clone(), ImageLimits::default()).with_dicom_view(view);
        let (in_files, others): (Vec<&ImageInfo>, Vec<_>) =
            infos.partition(|image| root.join(&image.name).is_file());
        let files = in_files.into_iter().map(|image| image.name.clone()).collect();
        let wanted: HashSet<Digest> = others.into_iter().filter_map(|image| image.sha256).collect();
        let embedded =
            if wanted.is_empty() { HashMap::new() } else { find_embedded(source, &wanted) };
        Self { root, files, images, embedded }
    }

    /// Creates the reader for the images of all records of a run. `records`: its folder or file.
    ///
    /// # Errors
    ///
    /// The records cannot be read.
    pub fn for_run(source: &Path, view: DicomView, records: &Path) -> Result<Self> {
        let mut images: BTreeMap<_, ImageInfo> = BTreeMap::new();
        for record in open_records(records)? {
            if let Some(image) = record?.subject.image {
                images.entry((image.name.clone(), image.sha256)).or_insert(image);
            }
        }
        Ok(Self::for_images(source, view, images.values()))
    }

    /// Returns the paths of the images that are files.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|name| self.root.join(name))
    }

    /// Reads and decodes an image.
    ///
    /// # Errors
    ///
    /// The image is not found or cannot be decoded, or it is not the one that was judged.
    pub fn load(&mut self, image: &ImageInfo) -> Result<Arc<LoadedImage>, String> {
        self.read(image)?.load(self.images.limits())
    }

    /// Reads an image without decoding it.
    ///
    /// # Errors
    ///
    /// The image is not found, or it is not the one that was judged.
    pub fn read(&mut self, image: &ImageInfo) -> Result<Arc<EncodedImage>, String> {
        let Some(hash) = image.sha256 else {
            return Err(format!("{}: the record has no hash of the image", image.name));
        };
        let source = match self.embedded.get(&hash) {
            Some(bytes) => {
                ImageSource::Bytes { name: image.name.clone(), bytes: Arc::clone(bytes) }
            }
            None => ImageSource::File(self.root.join(&image.name)),
        };
        let encoded = self.images.read(&source)?;
        if encoded.sha256 != hash {
            return Err(format!("{}: not the image that was judged", image.name));
        }
        Ok(encoded)
    }
}

/// Finds images in a source that embeds them. A source that cannot be read has none.
fn find_embedded(source: &Path, wanted: &HashSet<Digest>) -> HashMap<Digest, Arc<[u8]>> {
    let options = SourceOptions { min_responses: 0, ..SourceOptions::default() };
    let Ok(cases) = cases::open(source, &options) else {
        return HashMap::new();
    };
    if !matches!(cases.kind, SourceKind::Parquet | SourceKind::Import) {
        return HashMap::new();
    }
    let images = cases.flatten().filter_map(|case| match case.image {
        Some(ImageSource::Bytes { bytes, .. }) => Some((Digest::sha256(&bytes), bytes)),
        Some(ImageSource::File(_)) | None => None,
    });
    images.filter(|(hash, _)| wanted.contains(hash)).collect()
}

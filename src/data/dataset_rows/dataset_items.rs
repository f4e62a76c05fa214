//! Rows of the public data sets, in the train and held-out parts this project uses.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::data::cases;
use crate::data::cases::{Case, ImageSource, SourceOptions};
use crate::data::dataset_rows::answer_terms::yes_no;

/// One question about one image with its reference answer.
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetItem {
    /// The image; embedded ones are shared by the items that ask about them.
    pub image: ImageSource,
    /// Equal for items about the same image: for clustered intervals and for splits.
    pub image_key: String,
    /// `slake`, `vqa_rad` or `path_vqa`.
    pub dataset: &'static str,
    /// The question.
    pub question: String,
    /// The reference answer.
    pub answer: String,
    /// Whether the question is closed: answered by yes or no, or by one of the options it names.
    pub closed: bool,
    /// The kind of question, within which answers are exchangeable: SLAKE's content type, VQA-RAD's
    /// question type, the first two words of the others.
    pub group: String,
    /// The part of the body, where the data set names it.
    pub organ: Option<String>,
    /// The modality, where the data set names it.
    pub modality: Option<String>,
}

/// A part of the data sets. No image is in two parts of one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetSplit {
    /// SLAKE's `train.json` in English.
    SlakeTrain,
    /// SLAKE's `validate.json` in English.
    SlakeValidate,
    /// VQA-RAD without the held-out images.
    VqaRadTrain,
    /// A tenth of VQA-RAD, by image.
    VqaRadHeldOut,
    /// Path-VQA's train shards.
    PathVqaTrain,
    /// All of SLAKE's, VQA-RAD's and Path-VQA's train parts.
    Train,
    /// SLAKE's `validate.json` and the held-out part of VQA-RAD.
    HeldOut,
}

impl DatasetSplit {
    fn parts(self) -> Vec<Self> {
        match self {
            Self::Train => vec![Self::SlakeTrain, Self::VqaRadTrain, Self::PathVqaTrain],
            Self::HeldOut => vec![Self::SlakeValidate, Self::VqaRadHeldOut],
            one => vec![one],
        }
    }

    /// The data set's name, its place under the data folder and the split within.
    fn place(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::SlakeTrain | Self::Train => ("slake", "slake/train.json", None),
            Self::SlakeValidate | Self::HeldOut => ("slake", "slake/validate.json", None),
            Self::VqaRadTrain | Self::VqaRadHeldOut => ("vqa_rad", "vqa_rad", None),
            Self::PathVqaTrain => ("path_vqa", "path_vqa", Some("train")),
        }
    }

    fn holds(self, image_key: &str) -> bool {
        match self {
            Self::VqaRadTrain => !held_out(image_key),
            Self::VqaRadHeldOut => held_out(image_key),
            _ => true,
        }
    }
}

/// Loads a part of the data sets under `data_root` (`slake/`, `vqa_rad/`, `path_vqa/` in their
/// released layouts). Rows without an answer are left out.
///
/// # Errors
/// If a data set is missing or a row of it is broken.
pub fn load_real(data_root: &Path, split: DatasetSplit) -> Result<Vec<DatasetItem>> {
    let mut items = Vec::new();
    for part in split.parts() {
        let (dataset, place, name) = part.place();
        let options = SourceOptions {
            split: name.map(str::to_owned),
            min_responses: 0,
            ..SourceOptions::default()
        };
        let mut images = ImagePool::default();
        let source = cases::open(&data_root.join(place), &options)
            .with_context(|| format!("the {dataset} data could not be opened"))?;
        for case in source {
            items.extend(item(case?, dataset, &mut images).filter(|i| part.holds(&i.image_key)));
        }
    }
    Ok(items)
}

fn item(case: Case, dataset: &'static str, images: &mut ImagePool) -> Option<DatasetItem> {
    let text = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let meta = |name: &str| {
        let value = case
            .meta
            .get(name)
            .and_then(|v| v.as_str())
            .unwrap_or_default();
        Some(value.to_owned()).filter(|v| !v.is_empty())
    };
    let answer = text(case.reference.as_deref()?);
    let question = text(&case.question);
    let group = match dataset {
        "slake" => meta("content_type"),
        "vqa_rad" => meta("question_type").map(|kind| question_type(&kind)),
        _ => None,
    };
    let group = group.unwrap_or_else(|| first_words(&question));
    let closed = meta("answer_type").is_some_and(|kind| kind.eq_ignore_ascii_case("closed"))
        || yes_no(&answer).is_some();
    let (organ, modality) = (meta("organ").or_else(|| meta("location")), meta("modality"));
    let (image, image_key) = images.shared(case.image?, dataset);
    let whole = !answer.is_empty();
    let found = DatasetItem {
        image,
        image_key,
        dataset,
        question,
        answer,
        closed,
        group,
        organ,
        modality,
    };
    whole.then_some(found)
}

/// VQA-RAD's question type: the first of several, with its two misspellings mended.
fn question_type(kind: &str) -> String {
    let first = kind
        .split(',')
        .next()
        .unwrap_or_default()
        .trim()
        .to_uppercase();
    match first.as_str() {
        "ATRIB" => "ATTRIB".into(),
        "PRSE" => "PRES".into(),
        _ => first,
    }
}

fn first_words(question: &str) -> String {
    let words: Vec<_> = question
        .split_whitespace()
        .take(2)
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

/// One in ten images, by a hash of the name: stable whatever else is in the data set.
fn held_out(image_key: &str) -> bool {
    let digest = Sha256::digest(image_key.as_bytes());
    let number = digest
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes));
    number.is_multiple_of(10)
}

/// Embedded images by content, each held once.
#[derive(Default)]
pub(super) struct ImagePool {
    by_content: HashMap<[u8; 32], Arc<[u8]>>,
}

impl ImagePool {
    /// The image as it is to be kept, and its key.
    pub(super) fn shared(&mut self, image: ImageSource, dataset: &str) -> (ImageSource, String) {
        match image {
            ImageSource::File(path) => {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                // SLAKE's images are all called `source.jpg`, in folders of their own.
                let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
                let key = if dataset == "slake" {
                    folder.to_string_lossy().into_owned()
                } else {
                    name
                };
                (ImageSource::File(path), format!("{dataset}/{key}"))
            }
            ImageSource::Bytes { name, bytes } => {
                let digest: [u8; 32] = Sha256::digest(&bytes).into();
                let bytes = Arc::clone(self.by_content.entry(digest).or_insert(bytes));
                let short = digest
                    .first_chunk::<8>()
                    .map_or(0, |d| u64::from_be_bytes(*d));
                (
                    ImageSource::Bytes { name, bytes },
                    format!("{dataset}/{short:016x}"),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_held_once() {
        let mut images = ImagePool::default();
        let image = |name: &str| ImageSource::Bytes {
            name: name.into(),
            bytes: [1, 2].into(),
        };
        let (a, a_key) = images.shared(image("a"), "path_vqa");
        let (b, b_key) = images.shared(image("b"), "path_vqa");
        assert_eq!(a_key, b_key);
        let (ImageSource::Bytes { bytes: a, .. }, ImageSource::Bytes { bytes: b, .. }) = (a, b)
        else {
            panic!("bytes became a file");
        };
        assert!(Arc::ptr_eq(&a, &b));
        let file = ImageSource::File("imgs/xmlab7/source.jpg".into());
        assert_eq!(images.shared(file, "slake").1, "slake/xmlab7");
    }

    #[test]
    fn about_a_tenth_is_held_out() {
        let held = (0..10_000)
            .filter(|i| held_out(&format!("vqa_rad/synpic{i}.jpg")))
            .count();
        assert!((900..1100).contains(&held), "{held}");
        assert_eq!(question_type("PRSE, ABN "), "PRES");
    }
}

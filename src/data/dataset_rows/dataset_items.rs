//! Items of the public data sets, with the train and held-out splits of this project.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::data::cases;
use crate::data::cases::{Case, ImageSource, SourceOptions};
use crate::data::dataset_rows::answer_terms::parse_yes_no;

/// A question about an image with its reference answer.
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetItem {
    /// Image. Items about the same embedded image share its bytes.
    pub image: ImageSource,
    /// Image identifier, equal for items about the same image. Used for bootstrap clusters and
    /// splits.
    pub image_key: String,
    /// `slake`, `vqa_rad` or `path_vqa`.
    pub dataset: &'static str,
    /// Question.
    pub question: String,
    /// Reference answer.
    pub answer: String,
    /// True for a closed question, which is answered by yes or no or by one of its options.
    pub is_closed: bool,
    /// Question type: SLAKE's content type, VQA-RAD's question type, or the first two words of the
    /// question. An answer to one question of a type is plausible for other questions of the type.
    pub question_type: String,
    /// Organ or body part, if given by the data set.
    pub organ: Option<String>,
    /// Modality, if given by the data set.
    pub modality: Option<String>,
}

/// A split of the data sets. Train and held-out splits have no image in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetSplit {
    /// SLAKE's `train.json` in English.
    SlakeTrain,
    /// SLAKE's `validate.json` in English.
    SlakeValidate,
    /// VQA-RAD without the held-out images.
    VqaRadTrain,
    /// About a tenth of VQA-RAD, split by image.
    VqaRadHeldOut,
    /// Path-VQA's train shards.
    PathVqaTrain,
    /// The train splits of SLAKE, VQA-RAD and Path-VQA.
    Train,
    /// SLAKE's `validate.json` and the held-out split of VQA-RAD.
    HeldOut,
}

impl DatasetSplit {
    /// Returns the splits of single data sets that make up this split.
    fn components(self) -> Vec<Self> {
        match self {
            Self::Train => vec![Self::SlakeTrain, Self::VqaRadTrain, Self::PathVqaTrain],
            Self::HeldOut => vec![Self::SlakeValidate, Self::VqaRadHeldOut],
            split => vec![split],
        }
    }

    /// Returns the name of the data set, its path in the data folder and the split to read.
    fn location(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::SlakeTrain | Self::Train => ("slake", "slake/train.json", None),
            Self::SlakeValidate | Self::HeldOut => ("slake", "slake/validate.json", None),
            Self::VqaRadTrain | Self::VqaRadHeldOut => ("vqa_rad", "vqa_rad", None),
            Self::PathVqaTrain => ("path_vqa", "path_vqa", Some("train")),
        }
    }

    /// Returns true if the split includes this image.
    fn includes(self, image_key: &str) -> bool {
        match self {
            Self::VqaRadTrain => !is_held_out(image_key),
            Self::VqaRadHeldOut => is_held_out(image_key),
            _ => true,
        }
    }
}

/// Names of the data sets with a training split.
pub const TRAINING_SETS: [&str; 3] = ["slake", "vqa_rad", "path_vqa"];

/// Loads the training splits of some of the [`TRAINING_SETS`] in `data_root`.
///
/// # Errors
/// If one of these data sets is missing or has a malformed row.
pub fn load_training_items(
    data_root: &Path,
    is_used: impl Fn(&str) -> bool,
) -> Result<Vec<DatasetItem>> {
    let mut items = Vec::new();
    for split in DatasetSplit::Train.components() {
        if is_used(split.location().0) {
            items.extend(load_dataset_items(data_root, split)?);
        }
    }
    Ok(items)
}

/// Loads a split of the data sets in `data_root` (`slake/`, `vqa_rad/`, `path_vqa/` in their
/// released layouts). Rows without an answer are skipped.
///
/// # Errors
/// If a data set is missing or has a malformed row.
pub fn load_dataset_items(data_root: &Path, split: DatasetSplit) -> Result<Vec<DatasetItem>> {
    let mut items = Vec::new();
    for part in split.components() {
        let (dataset, path, split) = part.location();
        let options = SourceOptions {
            split: split.map(str::to_owned),
            min_responses: 0,
            ..SourceOptions::default()
        };
        let mut images = ImagePool::default();
        let source = cases::open(&data_root.join(path), &options)
            .with_context(|| format!("could not open the data set {dataset}"))?;
        for case in source {
            items.extend(
                to_item(case?, dataset, &mut images).filter(|i| part.includes(&i.image_key)),
            );
        }
    }
    Ok(items)
}

fn to_item(case: Case, dataset: &'static str, images: &mut ImagePool) -> Option<DatasetItem> {
    let normalize_spaces = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let meta = |name: &str| {
        let value = case.meta.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        Some(value.to_owned()).filter(|v| !v.is_empty())
    };
    let answer = normalize_spaces(case.reference.as_deref()?);
    let question = normalize_spaces(&case.question);
    let question_type = match dataset {
        "slake" => meta("content_type"),
        "vqa_rad" => meta("question_type").map(|kind| normalize_question_type(&kind)),
        _ => None,
    };
    let question_type = question_type.unwrap_or_else(|| first_words(&question));
    let closed = meta("answer_type").is_some_and(|kind| kind.eq_ignore_ascii_case("closed"))
        || parse_yes_no(&answer).is_some();
    let (organ, modality) = (meta("organ").or_else(|| meta("location")), meta("modality"));
    let (image, image_key) = images.intern(case.image?, dataset);
    let has_answer = !answer.is_empty();
    let item = DatasetItem {
        image,
        image_key,
        dataset,
        question,
        answer,
        is_closed: closed,
        question_type,
        organ,
        modality,
    };
    has_answer.then_some(item)
}

/// Returns the first of VQA-RAD's question types, with two known misspellings corrected.
fn normalize_question_type(kind: &str) -> String {
    let first = kind.split(',').next().unwrap_or_default().trim().to_uppercase();
    match first.as_str() {
        "ATRIB" => "ATTRIB".into(),
        "PRSE" => "PRES".into(),
        _ => first,
    }
}

fn first_words(question: &str) -> String {
    let words: Vec<_> = question.split_whitespace().take(2).map(str::to_lowercase).collect();
    words.join(" ")
}

/// Returns true for about one image in ten, by a hash of its key, so the split does not depend on
/// other images.
fn is_held_out(image_key: &str) -> bool {
    let digest = Sha256::digest(image_key.as_bytes());
    let number = digest.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    number.is_multiple_of(10)
}

/// Embedded images, stored once per content.
#[derive(Default)]
pub(super) struct ImagePool {
    by_content: HashMap<[u8; 32], Arc<[u8]>>,
}

impl ImagePool {
    /// Returns the image with shared bytes, and its key.
    pub(super) fn intern(&mut self, image: ImageSource, dataset: &str) -> (ImageSource, String) {
        match image {
            ImageSource::File(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // In SLAKE, each image is a file `source.jpg` in a separate folder.
                let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
                let key =
                    if dataset == "slake" { folder.to_string_lossy().into_owned() } else { name };
                (ImageSource::File(path), format!("{dataset}/{key}"))
            }
            ImageSource::Bytes { name, bytes } => {
                let digest: [u8; 32] = Sha256::digest(&bytes).into();
                let bytes = Arc::clone(self.by_content.entry(digest).or_insert(bytes));
                let short = digest.first_chunk::<8>().map_or(0, |d| u64::from_be_bytes(*d));
                (ImageSource::Bytes { name, bytes }, format!("{dataset}/{short:016x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_images_share_bytes() {
        let mut images = ImagePool::default();
        let image = |name: &str| ImageSource::Bytes { name: name.into(), bytes: [1, 2].into() };
        let (a, a_key) = images.intern(image("a"), "path_vqa");
        let (b, b_key) = images.intern(image("b"), "path_vqa");
        assert_eq!(a_key, b_key);
        let (ImageSource::Bytes { bytes: a, .. }, ImageSource::Bytes { bytes: b, .. }) = (a, b)
        else {
            panic!("expected embedded images");
        };
        assert!(Arc::ptr_eq(&a, &b));
        let file = ImageSource::File("imgs/xmlab7/source.jpg".into());
        assert_eq!(images.intern(file, "slake").1, "slake/xmlab7");
    }

    #[test]
    fn about_one_tenth_is_held_out() {
        let held_out =
            (0..10_000).filter(|i| is_held_out(&format!("vqa_rad/synpic{i}.jpg"))).count();
        assert!((900..1100).contains(&held_out), "{held_out}");
        assert_eq!(normalize_question_type("PRSE, ABN "), "PRES");
    }
}

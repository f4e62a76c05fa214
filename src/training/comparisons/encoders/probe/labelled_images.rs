//! Images with class labels for linear probes: attributes of phantoms, or fields and closed
//! questions of a data set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_vision::{DecodedImage, ImageLimits};
use anyhow::{Context, Error, Result};

use crate::data::dataset_rows::{DatasetItem, DatasetSplit, load_dataset_items};
use crate::data::images::ImageReader;
use crate::data::phantoms::{Attributes, draw, generate_scene};

/// Minimum number of occurrences of a closed question that becomes a label.
const MIN_IMAGES_PER_QUESTION: usize = 25;
/// Maximum number of closed questions that become labels. The most frequent ones are chosen.
const MAX_QUESTIONS: usize = 8;
/// Seed offset of the training images.
const TRAIN_SEED: u64 = 0x001a_be15;

/// An image with its class for each label.
pub(super) struct LabelledImage {
    /// Name of the image.
    pub(super) name: String,
    /// Pixels.
    pub(super) image: DecodedImage,
    /// One entry per label; `None` if unknown.
    pub(super) classes: Vec<Option<usize>>,
}

/// Labelled images, split into training and test images.
pub(super) struct LabelledImageSet {
    /// Name of the set.
    pub(super) name: String,
    /// Labels with their numbers of classes.
    pub(super) labels: Vec<(String, usize)>,
    /// Training images.
    pub(super) train: Vec<LabelledImage>,
    /// Test images.
    pub(super) test: Vec<LabelledImage>,
}

/// Generates phantoms, labelled with their five attributes.
pub(super) fn phantoms(train: u64, test: u64, seed: u64) -> Result<LabelledImageSet> {
    let names = ["kind", "count", "side", "size", "tone"];
    let labelled_image = |seed: u64, index: u64| {
        let scene = generate_scene(seed, index);
        let drawn = draw(&scene);
        let (w, h) = (drawn.width() as usize, drawn.height() as usize);
        let image = DecodedImage::from_rgb(w, h, drawn.into_raw());
        Ok(LabelledImage {
            name: index.to_string(),
            image: image.context("the phantom image has no pixels")?,
            classes: scene.attributes().class_indices().map(Some).to_vec(),
        })
    };
    let labelled_images =
        |seed, n| (0..n).map(|i| labelled_image(seed, i)).collect::<Result<Vec<_>>>();
    let labels = names.into_iter().zip(Attributes::CLASSES);
    Ok(LabelledImageSet {
        name: "phantoms".to_owned(),
        labels: labels.map(|(name, n)| (name.to_owned(), n)).collect(),
        train: labelled_images(seed.wrapping_add(TRAIN_SEED), train)?,
        test: labelled_images(seed, test)?,
    })
}

/// Loads SLAKE's training and validation images, labelled with modality, organ and the answers to
/// frequent closed questions.
pub(super) fn slake(data: &Path) -> Result<LabelledImageSet> {
    let train = load_dataset_items(data, DatasetSplit::SlakeTrain)?;
    let test = load_dataset_items(data, DatasetSplit::SlakeValidate)?;
    let specs = label_specs(&train);
    let mut reader = ImageReader::new(PathBuf::new(), ImageLimits::default());
    let mut images = |items: &[DatasetItem]| -> Result<Vec<LabelledImage>> {
        let mut by_image: BTreeMap<&str, Vec<&DatasetItem>> = BTreeMap::new();
        for item in items {
            by_image.entry(&item.image_key).or_default().push(item);
        }
        let images = by_image.into_iter().filter_map(|(name, items)| {
            let classes = specs.iter().map(|spec| spec.class(&items)).collect();
            Some((name, items.first()?.image.clone(), classes))
        });
        images
            .map(|(name, source, classes)| {
                let image = reader.load(&source).map_err(Error::msg)?;
                Ok(LabelledImage { name: name.to_owned(), image: image.decoded.clone(), classes })
            })
            .collect()
    };
    Ok(LabelledImageSet {
        name: "SLAKE validate".to_owned(),
        train: images(&train)?,
        test: images(&test)?,
        labels: specs.iter().map(|spec| (spec.name.clone(), spec.classes.len())).collect(),
    })
}

/// Definition of a label: the field that contains its value, and its classes.
struct LabelSpec {
    name: String,
    field: FieldFn,
    /// Question in lower case. Only its rows have the value; `None` if all rows have it.
    question: Option<String>,
    /// Values in lower case.
    classes: Vec<String>,
}

impl LabelSpec {
    /// Returns the class of an image from its rows; `None` without a value or for an unknown value.
    fn class(&self, items: &[&DatasetItem]) -> Option<usize> {
        let has_question = |item: &&&DatasetItem| {
            self.question.as_ref().is_none_or(|q| item.question.to_lowercase() == *q)
        };
        let value = items.iter().filter(has_question).find_map(|item| (self.field)(item))?;
        let value = value.to_lowercase();
        self.classes.iter().position(|class| *class == value)
    }
}

/// Function that reads the value of a label from a row.
type FieldFn = fn(&DatasetItem) -> Option<&str>;

/// Finds the labels of a data set that have at least two classes.
fn label_specs(items: &[DatasetItem]) -> Vec<LabelSpec> {
    let fields: [(&str, FieldFn); 2] =
        [("modality", |item| item.modality.as_deref()), ("organ", |item| item.organ.as_deref())];
    let classes = |field: FieldFn, items: &mut dyn Iterator<Item = &DatasetItem>| {
        let mut classes: Vec<String> = items.filter_map(field).map(str::to_lowercase).collect();
        classes.sort();
        classes.dedup();
        classes
    };
    let mut specs: Vec<LabelSpec> = fields
        .into_iter()
        .map(|(name, field)| LabelSpec {
            name: name.to_owned(),
            field,
            question: None,
            classes: classes(field, &mut items.iter()),
        })
        .collect();
    let mut by_question: BTreeMap<String, Vec<&DatasetItem>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.is_closed) {
        by_question.entry(item.question.to_lowercase()).or_default().push(item);
    }
    let mut by_question: Vec<(String, Vec<&DatasetItem>)> = by_question.into_iter().collect();
    by_question.retain(|(_, items)| items.len() >= MIN_IMAGES_PER_QUESTION);
    by_question.sort_by_key(|(_, items)| std::cmp::Reverse(items.len()));
    let answer: FieldFn = |item| Some(&item.answer);
    let questions = by_question.into_iter().map(|(question, items)| LabelSpec {
        classes: classes(answer, &mut items.into_iter()),
        name: question.clone(),
        field: answer,
        question: Some(question),
    });
    specs.extend(questions.filter(|spec| spec.classes.len() > 1).take(MAX_QUESTIONS));
    specs.retain(|spec| spec.classes.len() > 1);
    specs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phantoms_have_attribute_labels() {
        let set = phantoms(3, 2, 5).unwrap();
        assert_eq!((set.train.len(), set.test.len()), (3, 2));
        let expected = generate_scene(5, 1).attributes().class_indices().map(Some);
        assert_eq!(set.test[1].classes, expected);
        assert_eq!(set.labels[3], ("size".to_owned(), 3));
        assert_ne!(set.train[0].image, set.test[0].image);
    }

    #[test]
    fn slake_labels_are_fields_and_frequent_questions() {
        let item = |image: usize, question: &str, answer: &str| DatasetItem {
            image: crate::data::cases::ImageSource::File(format!("{image}.jpg").into()),
            image_key: image.to_string(),
            dataset: "slake",
            question: question.to_owned(),
            answer: answer.to_owned(),
            is_closed: true,
            question_type: String::new(),
            organ: None,
            modality: Some(["CT", "MRI"][image % 2].to_owned()),
        };
        let healthy_item = |i| item(i, "Is it healthy?", if i % 3 == 0 { "Yes" } else { "no" });
        let mut items: Vec<DatasetItem> = (0..MIN_IMAGES_PER_QUESTION).map(healthy_item).collect();
        items.push(item(0, "Is this seldom asked?", "yes"));
        let specs = label_specs(&items);
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["modality", "is it healthy?"]);
        assert_eq!(specs[0].class(&[&items[1]]), Some(1));
        assert_eq!(specs[1].class(&[&items[MIN_IMAGES_PER_QUESTION], &items[0]]), Some(1));
        assert_eq!(specs[1].class(&[&items[MIN_IMAGES_PER_QUESTION]]), None);
    }
}

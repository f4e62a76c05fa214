//! Images with class labels for linear probes: attributes of phantoms, or fields and closed questions of
//! a data set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_vision::{DecodedImage, Limits};
use anyhow::{Context, Error, Result};

use crate::data::dataset_rows::{DatasetItem, DatasetSplit, load_real};
use crate::data::images::ImageReader;
use crate::data::phantoms::{Attributes, draw, scene};

/// Minimum number of times that a closed question must occur to become a label.
const ASKED: usize = 25;
/// Maximum number of closed questions that become labels, the most frequent first.
const QUESTIONS: usize = 8;
/// Seed offset of the training images.
const LEARNED: u64 = 0x001a_be15;

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
    let image = |seed: u64, index: u64| {
        let scene = scene(seed, index);
        let drawn = draw(&scene);
        let (w, h) = (drawn.width() as usize, drawn.height() as usize);
        let image = DecodedImage::from_rgb(w, h, drawn.into_raw());
        Ok(LabelledImage {
            name: index.to_string(),
            image: image.context("the phantom image has no pixels")?,
            classes: scene.attributes().classes().map(Some).to_vec(),
        })
    };
    let all = |seed, n| (0..n).map(|i| image(seed, i)).collect::<Result<Vec<_>>>();
    let sizes = names.into_iter().zip(Attributes::CLASSES);
    Ok(LabelledImageSet {
        name: "phantoms".to_owned(),
        labels: sizes.map(|(name, n)| (name.to_owned(), n)).collect(),
        train: all(seed.wrapping_add(LEARNED), train)?,
        test: all(seed, test)?,
    })
}

/// Loads SLAKE's training and validation images, labelled with modality, organ and the answers to
/// frequent closed questions.
pub(super) fn slake(data: &Path) -> Result<LabelledImageSet> {
    let train = load_real(data, DatasetSplit::SlakeTrain)?;
    let test = load_real(data, DatasetSplit::SlakeValidate)?;
    let tables = label_specs(&train);
    let mut files = ImageReader::new(PathBuf::new(), Limits::default());
    let mut images = |items: &[DatasetItem]| -> Result<Vec<LabelledImage>> {
        let mut by_image: BTreeMap<&str, Vec<&DatasetItem>> = BTreeMap::new();
        for item in items {
            by_image.entry(&item.image_key).or_default().push(item);
        }
        let labelled = by_image.into_iter().filter_map(|(name, items)| {
            let classes = tables.iter().map(|table| table.class(&items)).collect();
            Some((name, items.first()?.image.clone(), classes))
        });
        labelled
            .map(|(name, source, classes)| {
                let image = files.load(&source).map_err(Error::msg)?;
                Ok(LabelledImage {
                    name: name.to_owned(),
                    image: image.decoded.clone(),
                    classes,
                })
            })
            .collect()
    };
    Ok(LabelledImageSet {
        name: "SLAKE validate".to_owned(),
        train: images(&train)?,
        test: images(&test)?,
        labels: tables
            .iter()
            .map(|t| (t.name.clone(), t.classes.len()))
            .collect(),
    })
}

/// A label: the field with its value, and its classes.
struct LabelSpec {
    name: String,
    of: FieldFn,
    question: Option<String>,
    classes: Vec<String>,
}

impl LabelSpec {
    /// Returns the class of an image from its rows; `None` if the rows have no value or an unknown one.
    fn class(&self, items: &[&DatasetItem]) -> Option<usize> {
        let asked = |item: &&&DatasetItem| {
            self.question
                .as_ref()
                .is_none_or(|q| item.question.to_lowercase() == *q)
        };
        let value = items
            .iter()
            .filter(asked)
            .find_map(|item| (self.of)(item))?;
        let value = value.to_lowercase();
        self.classes.iter().position(|class| *class == value)
    }
}

/// Reads the value of a label from a row.
type FieldFn = fn(&DatasetItem) -> Option<&str>;

/// Finds the labels of a data set that have at least two classes.
fn label_specs(items: &[DatasetItem]) -> Vec<LabelSpec> {
    let named: [(&str, FieldFn); 2] = [
        ("modality", |item| item.modality.as_deref()),
        ("organ", |item| item.organ.as_deref()),
    ];
    let classes = |of: FieldFn, items: &mut dyn Iterator<Item = &DatasetItem>| {
        let mut classes: Vec<String> = items.filter_map(of).map(str::to_lowercase).collect();
        classes.sort();
        classes.dedup();
        classes
    };
    let mut tables: Vec<LabelSpec> = named
        .into_iter()
        .map(|(name, of)| LabelSpec {
            name: name.to_owned(),
            of,
            question: None,
            classes: classes(of, &mut items.iter()),
        })
        .collect();
    let mut asked: BTreeMap<String, Vec<&DatasetItem>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.closed) {
        asked
            .entry(item.question.to_lowercase())
            .or_default()
            .push(item);
    }
    let mut asked: Vec<(String, Vec<&DatasetItem>)> = asked.into_iter().collect();
    asked.retain(|(_, items)| items.len() >= ASKED);
    asked.sort_by_key(|(_, items)| std::cmp::Reverse(items.len()));
    let answer: FieldFn = |item| Some(&item.answer);
    let questions = asked.into_iter().map(|(question, items)| LabelSpec {
        classes: classes(answer, &mut items.into_iter()),
        name: question.clone(),
        of: answer,
        question: Some(question),
    });
    tables.extend(questions.filter(|t| t.classes.len() > 1).take(QUESTIONS));
    tables.retain(|table| table.classes.len() > 1);
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phantoms_have_attribute_labels() {
        let set = phantoms(3, 2, 5).unwrap();
        assert_eq!((set.train.len(), set.test.len()), (3, 2));
        let expected = scene(5, 1).attributes().classes().map(Some);
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
            closed: true,
            group: String::new(),
            organ: None,
            modality: Some(["CT", "MRI"][image % 2].to_owned()),
        };
        let ask = |i| item(i, "Is it healthy?", if i % 3 == 0 { "Yes" } else { "no" });
        let mut items: Vec<DatasetItem> = (0..ASKED).map(ask).collect();
        items.push(item(0, "Is this seldom asked?", "yes"));
        let tables = label_specs(&items);
        let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["modality", "is it healthy?"]);
        assert_eq!(tables[0].class(&[&items[1]]), Some(1));
        assert_eq!(tables[1].class(&[&items[ASKED], &items[0]]), Some(1));
        assert_eq!(tables[1].class(&[&items[ASKED]]), None);
    }
}

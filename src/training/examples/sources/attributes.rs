//! Frequent questions of the data sets as image attributes for the vision tower.
//!
//! Questions that are asked about many images (modality, organ, plane) describe properties that
//! differ between the images.

use std::collections::{BTreeMap, HashMap};

use crate::data::dataset_rows::DatasetItem;

/// Maximum number of questions that become attributes. The most frequent ones are chosen.
const MAX_QUESTIONS: usize = 48;
/// Minimum number of occurrences of a question that becomes an attribute.
const MIN_OCCURRENCES: usize = 25;
/// Maximum number of answers that become classes. The most frequent ones are chosen. The class of
/// an image with another answer is unknown.
const MAX_ANSWERS: usize = 12;

/// Frequent questions of the data sets with their classes.
pub(crate) struct QuestionAttributes {
    /// Classes of each question, which are its answers in lower case.
    classes: Vec<Vec<String>>,
    /// Known classes by image key.
    by_image: HashMap<String, Vec<QuestionClass>>,
}

/// Class of an image for one question.
struct QuestionClass {
    /// Index of the question.
    question: usize,
    /// Index of the answer.
    class: usize,
}

impl QuestionAttributes {
    /// Collects the frequent questions.
    pub(crate) fn new(items: &[DatasetItem]) -> Self {
        let mut by_question: BTreeMap<(&str, String), Vec<&DatasetItem>> = BTreeMap::new();
        for item in items {
            let question = (item.dataset, item.question.to_lowercase());
            by_question.entry(question).or_default().push(item);
        }
        // The sort is stable, so equally frequent questions are in alphabetical order.
        let mut frequent: Vec<Vec<&DatasetItem>> = by_question.into_values().collect();
        frequent.retain(|items| items.len() >= MIN_OCCURRENCES);
        frequent.sort_by_key(|items| std::cmp::Reverse(items.len()));
        frequent.truncate(MAX_QUESTIONS);
        let mut attributes = Self { classes: Vec::new(), by_image: HashMap::new() };
        for items in frequent {
            attributes.add(&items);
        }
        attributes
    }

    /// Adds a question unless all images have the same answer.
    fn add(&mut self, items: &[&DatasetItem]) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for item in items {
            *counts.entry(item.answer.to_lowercase()).or_default() += 1;
        }
        let mut answers: Vec<(String, usize)> = counts.into_iter().collect();
        answers.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        answers.truncate(MAX_ANSWERS);
        if answers.len() < 2 {
            return;
        }
        let question = self.classes.len();
        let answers: Vec<String> = answers.into_iter().map(|(answer, _)| answer).collect();
        for item in items {
            if let Some(class) = answers.iter().position(|a| *a == item.answer.to_lowercase()) {
                let classes = self.by_image.entry(item.image_key.clone()).or_default();
                classes.push(QuestionClass { question, class });
            }
        }
        self.classes.push(answers);
    }

    /// Returns the number of classes of every question.
    pub(crate) fn class_counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.classes.iter().map(Vec::len)
    }

    /// Returns the class of an image for every question; `None` if unknown.
    pub(crate) fn classes(&self, image_key: &str) -> Vec<Option<usize>> {
        let mut classes = vec![None; self.classes.len()];
        for known in self.by_image.get(image_key).into_iter().flatten() {
            if let Some(entry) = classes.get_mut(known.question) {
                *entry = Some(known.class);
            }
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::ImageSource;

    fn item(image: usize, question: &str, answer: &str) -> DatasetItem {
        DatasetItem {
            image: ImageSource::File(format!("{image}.jpg").into()),
            image_key: image.to_string(),
            dataset: "slake",
            question: question.to_owned(),
            answer: answer.to_owned(),
            is_closed: false,
            question_type: String::new(),
            organ: None,
            modality: None,
        }
    }

    #[test]
    fn frequent_questions_with_differing_answers_are_attributes() {
        let mut items = Vec::new();
        for i in 0..MIN_OCCURRENCES {
            items.push(item(i, "Which plane?", if i % 3 == 0 { "Axial" } else { "coronal" }));
            items.push(item(i, "Is it an image?", "Yes"));
        }
        items.push(item(0, "What is this?", "A lung"));
        let attributes = QuestionAttributes::new(&items);
        assert_eq!(attributes.class_counts().collect::<Vec<_>>(), [2]);
        assert_eq!(attributes.classes("0"), [Some(1)]);
        assert_eq!(attributes.classes("1"), [Some(0)]);
        assert_eq!(attributes.classes("elsewhere"), [None]);
    }
}

//! Questions that a data set asks about many images, as attributes for an image encoder: what is
//! asked again and again (the modality, the organ, the plane) is what its images differ in.

use std::collections::{BTreeMap, HashMap};

use crate::data::dataset_rows::DatasetItem;

/// Questions that become attributes, the most frequent first.
const QUESTIONS: usize = 48;
/// A question asked about fewer images is left out.
const FEWEST: usize = 25;
/// Distinct answers that become classes, the most frequent first; other answers are not known.
const ANSWERS: usize = 12;

/// The frequent questions of some data sets.
pub(crate) struct QuestionAttributes {
    /// The answers of each question.
    classes: Vec<Vec<String>>,
    /// The known classes by image: question and answer.
    by_image: HashMap<String, Vec<(usize, usize)>>,
}

impl QuestionAttributes {
    /// The frequent questions among `items`.
    pub(crate) fn new(items: &[DatasetItem]) -> Self {
        let mut asked: BTreeMap<(&str, String), Vec<&DatasetItem>> = BTreeMap::new();
        for item in items {
            let question = (item.dataset, item.question.to_lowercase());
            asked.entry(question).or_default().push(item);
        }
        // A stable sort: of equally frequent questions the first in the alphabet.
        let mut asked: Vec<Vec<&DatasetItem>> = asked.into_values().collect();
        asked.retain(|items| items.len() >= FEWEST);
        asked.sort_by_key(|items| std::cmp::Reverse(items.len()));
        asked.truncate(QUESTIONS);
        let mut found = Self {
            classes: Vec::new(),
            by_image: HashMap::new(),
        };
        for items in asked {
            found.add(&items);
        }
        found
    }

    /// Adds a question; one that everybody answers alike tells nothing of an image.
    fn add(&mut self, items: &[&DatasetItem]) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for item in items {
            *counts.entry(item.answer.to_lowercase()).or_default() += 1;
        }
        let mut answers: Vec<(String, usize)> = counts.into_iter().collect();
        answers.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        answers.truncate(ANSWERS);
        if answers.len() < 2 {
            return;
        }
        let question = self.classes.len();
        let answers: Vec<String> = answers.into_iter().map(|(answer, _)| answer).collect();
        for item in items {
            if let Some(class) = answers
                .iter()
                .position(|a| *a == item.answer.to_lowercase())
            {
                let known = self.by_image.entry(item.image_key.clone()).or_default();
                known.push((question, class));
            }
        }
        self.classes.push(answers);
    }

    /// Numbers of classes of every question.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.classes.iter().map(Vec::len)
    }

    /// The class of every question about an image, where it is known.
    pub(crate) fn classes(&self, image_key: &str) -> Vec<Option<usize>> {
        let mut classes = vec![None; self.classes.len()];
        for (question, class) in self.by_image.get(image_key).into_iter().flatten() {
            if let Some(entry) = classes.get_mut(*question) {
                *entry = Some(*class);
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
            closed: false,
            group: String::new(),
            organ: None,
            modality: None,
        }
    }

    #[test]
    fn frequent_questions_with_differing_answers_are_attributes() {
        let mut items = Vec::new();
        for i in 0..FEWEST {
            items.push(item(
                i,
                "Which plane?",
                if i % 3 == 0 { "Axial" } else { "coronal" },
            ));
            items.push(item(i, "Is it an image?", "Yes"));
        }
        items.push(item(0, "What is this?", "A lung"));
        let asked = QuestionAttributes::new(&items);
        assert_eq!(asked.sizes().collect::<Vec<_>>(), [2]);
        assert_eq!(asked.classes("0"), [Some(1)]);
        assert_eq!(asked.classes("1"), [Some(0)]);
        assert_eq!(asked.classes("elsewhere"), [None]);
    }
}

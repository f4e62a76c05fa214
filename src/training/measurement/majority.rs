//! Majority-class baseline: prefers the more frequent answer, without an image or a model.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::data::dataset_rows::DatasetItem;

/// Frequencies of answers in the training split.
pub(crate) struct MajorityAnswers {
    /// Occurrences of each answer to a question, by data set.
    by_question: HashMap<(&'static str, String), HashMap<String, usize>>,
    /// Occurrences of each answer to questions of a type, by data set.
    by_type: HashMap<(&'static str, String), HashMap<String, usize>>,
}

impl MajorityAnswers {
    /// Counts the answers of the training items.
    pub(crate) fn new(items: &[DatasetItem]) -> Self {
        let mut majority = Self { by_question: HashMap::new(), by_type: HashMap::new() };
        for item in items {
            let answer = normal_form(&item.answer);
            let question = (item.dataset, normal_form(&item.question));
            let kind = (item.dataset, item.question_type.clone());
            let by_question = majority.by_question.entry(question).or_default();
            *by_question.entry(answer.clone()).or_default() += 1;
            *majority.by_type.entry(kind).or_default().entry(answer).or_default() += 1;
        }
        majority
    }

    /// Returns 1 if the better response is the more frequent answer to this question, 0 if it is the
    /// less frequent one, and ½ if both are equally frequent. If the training split has neither, the
    /// frequencies among questions of this type count.
    pub(crate) fn accuracy(
        &self,
        item: &DatasetItem,
        responses: &[String; 2],
        known: Ordering,
    ) -> f64 {
        let answers = responses.each_ref().map(|response| normal_form(response));
        let count = |counts: Option<&HashMap<String, usize>>, answer: &String| {
            counts.and_then(|counts| counts.get(answer)).copied().unwrap_or(0)
        };
        let question = (item.dataset, normal_form(&item.question));
        let kind = (item.dataset, item.question_type.clone());
        let tables = [self.by_question.get(&question), self.by_type.get(&kind)];
        let orders = tables.map(|table| {
            let [a, b] = answers.each_ref().map(|answer| count(table, answer));
            a.cmp(&b)
        });
        match orders.into_iter().find(|order| order.is_ne()) {
            None => 0.5,
            Some(order) => f64::from(u8::from(order == known)),
        }
    }
}

/// Returns a text in lower case without punctuation at its end.
fn normal_form(text: &str) -> String {
    text.trim().trim_end_matches(['.', '?', '!']).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::ImageSource;

    fn item(question: &str, kind: &str, answer: &str) -> DatasetItem {
        DatasetItem {
            image: ImageSource::File("a.jpg".into()),
            image_key: "slake/a".to_owned(),
            dataset: "slake",
            question: question.to_owned(),
            answer: answer.to_owned(),
            is_closed: true,
            question_type: kind.to_owned(),
            organ: None,
            modality: None,
        }
    }

    #[test]
    fn more_frequent_answer_is_preferred() {
        let train = [
            item("Is it healthy?", "health", "No"),
            item("is it healthy?", "health", "no."),
            item("Is it healthy?", "health", "Yes"),
            item("Is it well?", "health", "yes"),
            item("Is it well?", "health", "yes"),
        ];
        let majority = MajorityAnswers::new(&train);
        let responses = ["yes", "no"].map(str::to_owned);
        let accuracy = |question: &str, kind: &str, order| {
            majority.accuracy(&item(question, kind, ""), &responses, order)
        };
        assert!(accuracy("Is it healthy?", "health", Ordering::Less) > 0.9);
        assert!(accuracy("Is it healthy?", "health", Ordering::Greater) < 0.1);
        // An unknown question of a known type: yes is more frequent.
        assert!(accuracy("Is it sick?", "health", Ordering::Greater) > 0.9);
        assert!((accuracy("Where?", "place", Ordering::Less) - 0.5).abs() < 1e-9);
    }
}

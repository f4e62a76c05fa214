//! Samples plausible wrong answers from the right answers to other questions.
//!
//! A judge can detect an implausible answer without looking at the image. Therefore "yes" is paired
//! with "no", an option with another option of the question, and any other answer with an answer to
//! a question of the same type. Answers are sampled in proportion to their frequency, so frequency
//! alone does not reveal the right answer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::data::dataset_rows::answer_terms::{normalize, overlaps, parse_yes_no, terms};
use crate::data::dataset_rows::dataset_items::DatasetItem;
use crate::data::dataset_rows::question_options;

/// Number of most similar questions that half of the samples come from. Most of them have the same
/// text and are about other images.
const NEAREST_QUESTIONS: usize = 16;

/// Maximum number of questions for the other half of the samples, which come from the most similar
/// quarter of all candidates.
const MAX_NEAREST_QUESTIONS: usize = 128;

/// Random noise added to similarities, which shuffles equally similar questions.
const JITTER: f32 = 0.05;

/// Right answers of a set of items, indexed by question.
///
/// Build the pool from many items. To measure on a held-out split, use the items of both the train
/// and the held-out split.
pub struct DistractorPool {
    /// Distinct answers.
    answers: Vec<PooledAnswer>,
    /// Occurrences of answers.
    uses: Vec<AnswerUse>,
    /// Indices into `uses` by data set and question type; the empty type lists the whole data set.
    uses_by_type: HashMap<(&'static str, String), Vec<usize>>,
    /// Indices into `answers` by data set and normal form.
    by_normal_form: HashMap<(&'static str, String), usize>,
    /// Word ids of question words.
    vocabulary: HashMap<String, u32>,
    /// Rarity weight of each word id.
    rarity: Vec<f32>,
}

/// A distinct answer in its most frequent spelling.
struct PooledAnswer {
    text: String,
    terms: BTreeSet<String>,
    shape: AnswerShape,
}

/// One occurrence of an answer.
struct AnswerUse {
    /// Index of the answer.
    answer: usize,
    /// Word ids of the question, sorted.
    question: Vec<u32>,
}

/// Shape of an answer. A wrong answer should have the shape of the right one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerShape {
    YesNo,
    Number,
    Word,
    Phrase,
    Sentence,
}

fn answer_shape(text: &str) -> AnswerShape {
    let words = terms(text);
    let is_number = |w: &String| w.bytes().all(|b| b.is_ascii_digit());
    match words.len() {
        _ if parse_yes_no(text).is_some() => AnswerShape::YesNo,
        0..=1 if words.iter().all(is_number) => AnswerShape::Number,
        0..=2 => AnswerShape::Word,
        3..=6 => AnswerShape::Phrase,
        _ => AnswerShape::Sentence,
    }
}

impl DistractorPool {
    /// Builds the pool from the answers to `items`.
    pub fn new(items: &[DatasetItem]) -> Self {
        let mut pool = Self {
            answers: Vec::new(),
            uses: Vec::new(),
            uses_by_type: HashMap::new(),
            by_normal_form: HashMap::new(),
            vocabulary: HashMap::new(),
            rarity: Vec::new(),
        };
        pool.index_words(items);
        pool.collect_answers(items);
        for item in items.iter().filter(|item| parse_yes_no(&item.answer).is_none()) {
            let key = (item.dataset, normalize(&item.answer));
            let Some(&answer) = pool.by_normal_form.get(&key) else {
                continue;
            };
            let index = pool.uses.len();
            pool.uses.push(AnswerUse { answer, question: pool.word_ids(&item.question) });
            for kind in [item.question_type.as_str(), ""] {
                pool.uses_by_type.entry((item.dataset, kind.to_owned())).or_default().push(index);
            }
        }
        pool
    }

    /// Assigns ids to the words of the questions. The rarity of a word is the logarithm of its
    /// inverse frequency.
    fn index_words(&mut self, items: &[DatasetItem]) {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for item in items {
            for word in terms(&item.question) {
                *counts.entry(word).or_default() += 1;
            }
        }
        for (id, (word, count)) in counts.into_iter().enumerate() {
            self.vocabulary.insert(word, id as u32);
            self.rarity.push((items.len() as f32 / count as f32).ln() + 0.1);
        }
    }

    /// Collects the distinct answers, each in its most frequent spelling.
    fn collect_answers(&mut self, items: &[DatasetItem]) {
        let mut spellings: BTreeMap<(&'static str, String), BTreeMap<&str, u32>> = BTreeMap::new();
        for item in items {
            let counts = spellings.entry((item.dataset, normalize(&item.answer))).or_default();
            *counts.entry(&item.answer).or_default() += 1;
        }
        for (key, counts) in spellings {
            let most_frequent =
                counts.into_iter().max_by_key(|&(text, count)| (count, Reverse(text)));
            let text = most_frequent.map_or("", |(text, _)| text);
            self.by_normal_form.insert(key, self.answers.len());
            self.answers.push(PooledAnswer {
                text: text.to_owned(),
                terms: terms(text),
                shape: answer_shape(text),
            });
        }
    }

    fn word_ids(&self, question: &str) -> Vec<u32> {
        let mut ids: Vec<u32> =
            terms(question).iter().filter_map(|word| self.vocabulary.get(word).copied()).collect();
        ids.sort_unstable();
        ids
    }

    /// Samples a wrong answer to the item's question, in the spelling of its data set. Returns
    /// `None` if there is no candidate.
    pub fn sample(&self, item: &DatasetItem, rng: &mut ChaCha8Rng) -> Option<String> {
        if let Some(yes) = parse_yes_no(&item.answer) {
            return Some(match_style(&item.answer, if yes { "no" } else { "yes" }));
        }
        let options = question_options::other_options(&item.question, &item.answer);
        if let Some(option) = options.get(rng.random_range(0..options.len().max(1))) {
            let known = self.by_normal_form.get(&(item.dataset, normalize(option)));
            let known = known.and_then(|&index| self.answers.get(index));
            return Some(
                known.map_or_else(|| match_style(&item.answer, option), |a| a.text.clone()),
            );
        }
        let wrong = self.candidates(item);
        let nearest = self.nearest(item, &wrong, rng);
        let chosen = nearest.get(rng.random_range(0..nearest.len().max(1)))?;
        self.answers.get(chosen.answer).map(|answer| answer.text.clone())
    }

    /// Samples a wrong answer from the answers to all questions of the item's type, in proportion to
    /// their frequency. Returns `None` if there is no candidate, for a question of yes or no, and for a
    /// question that lists its options.
    pub fn sample_of_type(&self, item: &DatasetItem, rng: &mut ChaCha8Rng) -> Option<String> {
        let has_options = !question_options::other_options(&item.question, &item.answer).is_empty();
        if has_options || parse_yes_no(&item.answer).is_some() {
            return None;
        }
        let chosen = self.candidates(item).choose(rng).copied()?;
        self.answers.get(chosen.answer).map(|answer| answer.text.clone())
    }

    /// Returns wrong answers to questions of the item's type (of any type if there are none), with
    /// the shape of the right answer if possible. Excludes answers whose words all occur in the
    /// question.
    fn candidates(&self, item: &DatasetItem) -> Vec<&AnswerUse> {
        let (right, shape) = (terms(&item.answer), answer_shape(&item.answer));
        let question = terms(&item.question);
        let mut is_wrong: HashMap<usize, bool> = HashMap::new();
        for kind in [item.question_type.as_str(), ""] {
            let pool = self.uses_by_type.get(&(item.dataset, kind.to_owned()));
            let pool = pool.map(Vec::as_slice).unwrap_or_default();
            let mut wrong: Vec<&AnswerUse> =
                pool.iter().filter_map(|&i| self.uses.get(i)).collect();
            wrong.retain(|answer_use| {
                *is_wrong.entry(answer_use.answer).or_insert_with(|| {
                    let answer = self.answers.get(answer_use.answer);
                    let is_in_question = |answer: &&PooledAnswer| answer.terms.is_subset(&question);
                    answer
                        .filter(|a| !is_in_question(a))
                        .is_some_and(|a| !overlaps(&a.terms, &right))
                })
            });
            let has_same_shape = |answer_use: &&AnswerUse| {
                self.answers.get(answer_use.answer).is_some_and(|a| a.shape == shape)
            };
            if wrong.iter().any(has_same_shape) {
                wrong.retain(has_same_shape);
            }
            if !wrong.is_empty() {
                return wrong;
            }
        }
        Vec::new()
    }

    /// Returns the answers to the questions most similar to the item's.
    fn nearest<'a>(
        &self,
        item: &DatasetItem,
        wrong: &[&'a AnswerUse],
        rng: &mut ChaCha8Rng,
    ) -> Vec<&'a AnswerUse> {
        let question = self.word_ids(&item.question);
        let mut ranked: Vec<(f32, &AnswerUse)> = Vec::with_capacity(wrong.len());
        for answer_use in wrong {
            let similarity = self.question_similarity(&question, &answer_use.question);
            ranked.push((similarity + JITTER * rng.random::<f32>(), answer_use));
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let larger = (ranked.len() / 4).clamp(NEAREST_QUESTIONS, MAX_NEAREST_QUESTIONS);
        let size = if rng.random_bool(0.5) { NEAREST_QUESTIONS } else { larger };
        ranked.into_iter().take(size).map(|(_, answer_use)| answer_use).collect()
    }

    /// Returns the rarity-weighted Jaccard similarity of the words of two questions, 0 to 1.
    fn question_similarity(&self, a: &[u32], b: &[u32]) -> f32 {
        let weight = |word: &u32| self.rarity.get(*word as usize).copied().unwrap_or(0.0);
        let shared: f32 = a.iter().filter(|word| b.binary_search(word).is_ok()).map(weight).sum();
        let all: f32 = a.iter().chain(b).map(weight).sum::<f32>() - shared;
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

/// Returns `text` with the capitalisation and full stop of `reference`.
fn match_style(reference: &str, text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    let is_capitalized = reference.chars().next().is_some_and(char::is_uppercase);
    let start: String = match first {
        Some(c) if is_capitalized => c.to_uppercase().collect(),
        Some(c) => c.to_string(),
        None => String::new(),
    };
    let stop = if reference.ends_with('.') { "." } else { "" };
    format!("{start}{}{stop}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::ImageSource;
    use rand::SeedableRng as _;

    fn item(question: &str, answer: &str, group: &str) -> DatasetItem {
        DatasetItem {
            image: ImageSource::File("a.jpg".into()),
            image_key: "slake/a".into(),
            dataset: "slake",
            question: question.into(),
            answer: answer.into(),
            is_closed: parse_yes_no(answer).is_some() || question.contains(" or "),
            question_type: group.into(),
            organ: None,
            modality: None,
        }
    }

    fn sample_counts(items: &[DatasetItem], index: usize) -> BTreeMap<String, u32> {
        let pool = DistractorPool::new(items);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut counts = BTreeMap::new();
        for _ in 0..400 {
            *counts.entry(pool.sample(&items[index], &mut rng).unwrap()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn yes_and_no_are_paired_in_same_style() {
        let items = [item("Is it?", "Yes.", "A"), item("Is it?", "no", "A")];
        assert_eq!(sample_counts(&items, 0).into_keys().collect::<Vec<_>>(), ["No."]);
        assert_eq!(sample_counts(&items, 1).into_keys().collect::<Vec<_>>(), ["yes"]);
    }

    #[test]
    fn options_are_paired_with_each_other() {
        let items = [
            item("Which is bigger, liver or spleen?", "Liver", "Size"),
            item("Which is seen?", "Spleen", "Organ"),
            item("Which is bigger, lung or kidney?", "Lung", "Size"),
        ];
        assert_eq!(sample_counts(&items, 0).into_keys().collect::<Vec<_>>(), ["Spleen"]);
        assert_eq!(sample_counts(&items, 2).into_keys().collect::<Vec<_>>(), ["Kidney"]);
    }

    #[test]
    fn sampling_follows_frequency_without_synonyms() {
        let mut items = vec![item("What organ is it?", "Lung", "Organ")];
        items.extend((0..30).map(|_| item("What organ is it?", "Liver", "Organ")));
        items.extend((0..10).map(|_| item("What organ is it?", "Heart", "Organ")));
        for same in ["lungs", "Left Lung", "the lung.", "2"] {
            items.push(item("What organ is it?", same, "Organ"));
        }
        let counts = sample_counts(&items, 0);
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["Heart", "Liver"]);
        let proportion = f64::from(counts["Liver"]) / 400.0;
        assert!((0.65..0.85).contains(&proportion), "{proportion}");
    }

    #[test]
    fn answers_of_a_type_come_from_all_its_questions() {
        let mut items = vec![item("What organ is it?", "Lung", "Organ")];
        items.extend((0..40).map(|_| item("What organ is it?", "Liver", "Organ")));
        items.extend((0..400).map(|_| item("Which part is bright?", "Heart", "Organ")));
        items.push(item("Is it?", "yes", "Organ"));
        items.push(item("Which is bigger, liver or spleen?", "Liver", "Organ"));
        let pool = DistractorPool::new(&items);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut heart = 0;
        for _ in 0..200 {
            heart +=
                u32::from(pool.sample_of_type(&items[0], &mut rng) == Some("Heart".to_owned()));
        }
        assert!((150..200).contains(&heart), "{heart}");
        for given in &items[items.len() - 2..] {
            assert_eq!(pool.sample_of_type(given, &mut rng), None);
        }
    }

    #[test]
    fn numbers_are_paired_with_numbers() {
        let items =
            ["2", "1", "both lungs", "three", "Yes"].map(|a| item("How many?", a, "Quantity"));
        assert_eq!(sample_counts(&items, 0).into_keys().collect::<Vec<_>>(), ["1", "three"]);
        let alone = [item("How many?", "2", "Quantity")];
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        assert_eq!(DistractorPool::new(&alone).sample(&alone[0], &mut rng), None);
    }
}

//! Samples plausible wrong answers from the right answers to other questions.
//!
//! A judge can detect an implausible answer without looking at the image. Therefore "yes" is paired
//! with "no", an option with another option of the question, and any other answer with an answer to
//! a question of the same type. Answers are sampled in proportion to their frequency, so frequency
//! alone does not reveal the right answer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use crate::data::dataset_rows::answer_terms::{normal, overlap, terms, yes_no};
use crate::data::dataset_rows::dataset_items::DatasetItem;
use crate::data::dataset_rows::question_options;

/// Number of most similar questions that half of the samples come from. Most of these are the same
/// question about other images.
const NEAREST: usize = 16;

/// Upper limit of candidates for the other half, which uses the most similar quarter of the question type.
const OF_ITS_KIND: usize = 128;

/// Random noise added to similarities, which shuffles equally similar questions.
const JITTER: f32 = 0.05;

/// Right answers of a set of items, indexed by question.
///
/// Build the pool from many items. To measure on a held-out split, use the items of both the train and
/// the held-out split.
pub struct DistractorPool {
    answers: Vec<PooledAnswer>,
    given: Vec<AnswerUse>,
    /// Indices into `given` by data set and question type; the empty type has all of a data set.
    pools: HashMap<(&'static str, String), Vec<usize>>,
    /// Indices into `answers` by data set and normal form.
    spellings: HashMap<(&'static str, String), usize>,
    /// Word ids of question words.
    words: HashMap<String, u32>,
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
    answer: usize,
    /// Word ids of the question, sorted.
    question: Vec<u32>,
}

/// Shape of an answer. The wrong answer should have the same shape as the right one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerShape {
    YesNo,
    Number,
    Word,
    Phrase,
    Sentence,
}

fn shape(text: &str) -> AnswerShape {
    let words = terms(text);
    let digits = |w: &String| w.bytes().all(|b| b.is_ascii_digit());
    match words.len() {
        _ if yes_no(text).is_some() => AnswerShape::YesNo,
        0..=1 if words.iter().all(digits) => AnswerShape::Number,
        0..=2 => AnswerShape::Word,
        3..=6 => AnswerShape::Phrase,
        _ => AnswerShape::Sentence,
    }
}

impl DistractorPool {
    /// Builds the pool from the answers to `items`.
    pub fn new(items: &[DatasetItem]) -> Self {
        let mut pools = Self {
            answers: Vec::new(),
            given: Vec::new(),
            pools: HashMap::new(),
            spellings: HashMap::new(),
            words: HashMap::new(),
            rarity: Vec::new(),
        };
        pools.add_words(items);
        pools.add_answers(items);
        for item in items.iter().filter(|item| yes_no(&item.answer).is_none()) {
            let key = (item.dataset, normal(&item.answer));
            let Some(&answer) = pools.spellings.get(&key) else {
                continue;
            };
            let index = pools.given.len();
            pools.given.push(AnswerUse {
                answer,
                question: pools.numbers(&item.question),
            });
            for kind in [item.group.as_str(), ""] {
                pools
                    .pools
                    .entry((item.dataset, kind.to_owned()))
                    .or_default()
                    .push(index);
            }
        }
        pools
    }

    /// Assigns ids to the words of the questions. Rarity is the logarithm of the inverse frequency.
    fn add_words(&mut self, items: &[DatasetItem]) {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for item in items {
            for word in terms(&item.question) {
                *counts.entry(word).or_default() += 1;
            }
        }
        for (number, (word, count)) in counts.into_iter().enumerate() {
            self.words.insert(word, number as u32);
            self.rarity
                .push((items.len() as f32 / count as f32).ln() + 0.1);
        }
    }

    /// Collects the distinct answers, each in its most frequent spelling.
    fn add_answers(&mut self, items: &[DatasetItem]) {
        let mut spelt: BTreeMap<(&'static str, String), BTreeMap<&str, u32>> = BTreeMap::new();
        for item in items {
            let forms = spelt
                .entry((item.dataset, normal(&item.answer)))
                .or_default();
            *forms.entry(&item.answer).or_default() += 1;
        }
        for (key, forms) in spelt {
            let most_frequent = forms
                .into_iter()
                .max_by_key(|&(text, count)| (count, Reverse(text)));
            let text = most_frequent.map_or("", |(text, _)| text);
            self.spellings.insert(key, self.answers.len());
            self.answers.push(PooledAnswer {
                text: text.to_owned(),
                terms: terms(text),
                shape: shape(text),
            });
        }
    }

    fn numbers(&self, question: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = terms(question)
            .iter()
            .filter_map(|word| self.words.get(word).copied())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// Samples a wrong answer to the item's question, in the spelling of its data set. Returns `None`
    /// if there is no candidate.
    pub fn draw(&self, item: &DatasetItem, rng: &mut ChaCha8Rng) -> Option<String> {
        if let Some(yes) = yes_no(&item.answer) {
            return Some(in_style_of(&item.answer, if yes { "no" } else { "yes" }));
        }
        let options = question_options::others(&item.question, &item.answer);
        if let Some(option) = options.get(rng.random_range(0..options.len().max(1))) {
            let known = self.spellings.get(&(item.dataset, normal(option)));
            let known = known.and_then(|&index| self.answers.get(index));
            return Some(
                known.map_or_else(|| in_style_of(&item.answer, option), |a| a.text.clone()),
            );
        }
        let wrong = self.candidates(item);
        let nearest = self.nearest(item, &wrong, rng);
        let chosen = nearest.get(rng.random_range(0..nearest.len().max(1)))?;
        self.answers
            .get(chosen.answer)
            .map(|answer| answer.text.clone())
    }

    /// Returns wrong answers to questions of the item's type, with the shape of the right answer if
    /// possible. Excludes answers whose words all occur in the question.
    fn candidates(&self, item: &DatasetItem) -> Vec<&AnswerUse> {
        let (right, look) = (terms(&item.answer), shape(&item.answer));
        let asked = terms(&item.question);
        let mut known: HashMap<usize, bool> = HashMap::new();
        for kind in [item.group.as_str(), ""] {
            let pool = self.pools.get(&(item.dataset, kind.to_owned()));
            let pool = pool.map(Vec::as_slice).unwrap_or_default();
            let mut wrong: Vec<&AnswerUse> =
                pool.iter().filter_map(|&i| self.given.get(i)).collect();
            wrong.retain(|given| {
                *known.entry(given.answer).or_insert_with(|| {
                    let answer = self.answers.get(given.answer);
                    let said = |answer: &&PooledAnswer| answer.terms.is_subset(&asked);
                    answer
                        .filter(|a| !said(a))
                        .is_some_and(|a| !overlap(&a.terms, &right))
                })
            });
            let looks_same = |given: &&AnswerUse| {
                self.answers
                    .get(given.answer)
                    .is_some_and(|a| a.shape == look)
            };
            if wrong.iter().any(looks_same) {
                wrong.retain(looks_same);
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
        let question = self.numbers(&item.question);
        let mut ranked: Vec<(f32, &AnswerUse)> = Vec::with_capacity(wrong.len());
        for given in wrong {
            let likeness = self.likeness(&question, &given.question);
            ranked.push((likeness + JITTER * rng.random::<f32>(), given));
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let many = (ranked.len() / 4).clamp(NEAREST, OF_ITS_KIND);
        let size = if rng.random_bool(0.5) { NEAREST } else { many };
        ranked
            .into_iter()
            .take(size)
            .map(|(_, given)| given)
            .collect()
    }

    /// Returns the rarity-weighted Jaccard similarity of the words of two questions, 0 to 1.
    fn likeness(&self, a: &[u32], b: &[u32]) -> f32 {
        let weight = |word: &u32| self.rarity.get(*word as usize).copied().unwrap_or(0.0);
        let shared: f32 = a
            .iter()
            .filter(|word| b.binary_search(word).is_ok())
            .map(weight)
            .sum();
        let all: f32 = a.iter().chain(b).map(weight).sum::<f32>() - shared;
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

/// Returns `text` with the capitalisation and full stop of `model`.
fn in_style_of(model: &str, text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    let capital = model.chars().next().is_some_and(char::is_uppercase);
    let start: String = match first {
        Some(c) if capital => c.to_uppercase().collect(),
        Some(c) => c.to_string(),
        None => String::new(),
    };
    let stop = if model.ends_with('.') { "." } else { "" };
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
            closed: yes_no(answer).is_some() || question.contains(" or "),
            group: group.into(),
            organ: None,
            modality: None,
        }
    }

    fn draws(items: &[DatasetItem], index: usize) -> BTreeMap<String, u32> {
        let wrong = DistractorPool::new(items);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut seen = BTreeMap::new();
        for _ in 0..400 {
            *seen
                .entry(wrong.draw(&items[index], &mut rng).unwrap())
                .or_default() += 1;
        }
        seen
    }

    #[test]
    fn yes_and_no_are_paired_in_same_style() {
        let items = [item("Is it?", "Yes.", "A"), item("Is it?", "no", "A")];
        assert_eq!(draws(&items, 0).into_keys().collect::<Vec<_>>(), ["No."]);
        assert_eq!(draws(&items, 1).into_keys().collect::<Vec<_>>(), ["yes"]);
    }

    #[test]
    fn options_are_paired_with_each_other() {
        let items = [
            item("Which is bigger, liver or spleen?", "Liver", "Size"),
            item("Which is seen?", "Spleen", "Organ"),
            item("Which is bigger, lung or kidney?", "Lung", "Size"),
        ];
        assert_eq!(draws(&items, 0).into_keys().collect::<Vec<_>>(), ["Spleen"]);
        assert_eq!(draws(&items, 2).into_keys().collect::<Vec<_>>(), ["Kidney"]);
    }

    #[test]
    fn sampling_follows_frequency_without_synonyms() {
        let mut items = vec![item("What organ is it?", "Lung", "Organ")];
        items.extend((0..30).map(|_| item("What organ is it?", "Liver", "Organ")));
        items.extend((0..10).map(|_| item("What organ is it?", "Heart", "Organ")));
        for same in ["lungs", "Left Lung", "the lung.", "2"] {
            items.push(item("What organ is it?", same, "Organ"));
        }
        let seen = draws(&items, 0);
        assert_eq!(seen.keys().collect::<Vec<_>>(), ["Heart", "Liver"]);
        let proportion = f64::from(seen["Liver"]) / 400.0;
        assert!((0.65..0.85).contains(&proportion), "{proportion}");
    }

    #[test]
    fn numbers_are_paired_with_numbers() {
        let items =
            ["2", "1", "both lungs", "three", "Yes"].map(|a| item("How many?", a, "Quantity"));
        assert_eq!(
            draws(&items, 0).into_keys().collect::<Vec<_>>(),
            ["1", "three"]
        );
        let alone = [item("How many?", "2", "Quantity")];
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        assert_eq!(DistractorPool::new(&alone).draw(&alone[0], &mut rng), None);
    }
}
